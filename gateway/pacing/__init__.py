"""How many offline rows run at a target, and when: no HTTP, no queue, no clock of its own."""
