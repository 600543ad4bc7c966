# Headway. `make help` lists what there is.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: setup demo test test-long chaos check serve bench bench-coserve bench-cpu clients soak fuzz interop help
.DEFAULT_GOAL := help

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with everything in it

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@PYTHON=$(PYTHON) VENV=$(VENV) scripts/setup
	@touch $@

demo: $(STAMP) ## Set up, start everything, run the main job in front of you
	@$(BIN)/headway bench demo

test: check ## Set up and run every test
	@$(BIN)/python -m pytest -n 4 --dist worksteal

test-long: $(STAMP) ## The tests at full scale
	@$(BIN)/python -m pytest -m "long or not long" --timeout 3600

ROUNDS ?= 20
chaos: $(STAMP) ## Kill everything at random while batches run: ROUNDS=20 SEED=drawn
	@$(BIN)/python -m tests.chaos --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

clients: $(STAMP) ## Other people's clients, each in an environment of its own
	@$(BIN)/python -m pytest -m "long or not long" tests/clients tests/conformance/test_batch_clients.py tests/house/test_clients.py

MINUTES ?= 30
soak: $(STAMP) ## Load with faults for MINUTES=30; nothing may be left behind
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fuzz: $(STAMP) ## Odd bodies and odd answers for MINUTES=10
	@$(BIN)/python -m tests.fuzz --minutes $(if $(filter command line environment,$(origin MINUTES)),$(MINUTES),10) $(if $(SEED),--seed $(SEED))

interop: $(STAMP) ## A real vLLM behind the gateway: URL=a running one, or one is installed
	@$(BIN)/python -m tests.interop $(if $(URL),--url $(URL))

check: $(STAMP) ## Lint, types, layers, structure, formatting
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

serve: $(STAMP) ## Start the server with embedded defaults
	@$(BIN)/headway serve

bench-coserve: $(STAMP) ## Both lanes on simulated engines, in arms; minutes
	@$(BIN)/headway bench coserve $(ARGS)

ENGINE ?= worker
bench-cpu: $(STAMP) ## Both lanes on a real engine on the CPU, in arms: ENGINE=worker or vllm
	@$(BIN)/python -m benchmarks.cpu_coserve $(ENGINE) $(ARGS)

bench: $(STAMP) ## List the benchmarks
	@$(BIN)/headway bench --help
