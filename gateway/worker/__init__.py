"""The bundled torch worker. Imports nothing of the gateway but core, schemas, telemetry."""
