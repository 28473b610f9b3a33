# The front door. Every target does the set-up that it needs; what it does is in scripts/.
.DEFAULT_GOAL := help
.PHONY: run test lint gpu docs fuzz soak wheel clean help

run: ## Set up, build, and serve real queries: the main job
	scripts/setup.sh run
	scripts/build.sh
	.venv/bin/headrace run

test: ## Set up, build, and pass every test for the devices present
	scripts/setup.sh test
	scripts/build.sh
	scripts/test.sh

lint: ## Formatting, clang-tidy, ruff, mypy, include directions, shell scripts
	scripts/setup.sh lint
	scripts/lint.sh

gpu: ## The same tests, on a GPU that must be there
	scripts/gpu.sh

docs: ## The documentation as a site, in build/site; warnings are errors
	scripts/setup.sh docs
	scripts/docs.sh

fuzz: ## Each fuzz target for FUZZ_SECONDS (60)
	scripts/setup.sh sanitize
	scripts/fuzz.sh

soak: ## SOAK_MINUTES (10) of load: nothing lost, leaked or left behind
	scripts/setup.sh run
	scripts/build.sh
	.venv/bin/headrace soak --minutes $${SOAK_MINUTES:-10}

wheel: ## Wheels in dist that need no compiler, tested where there is none; PYTHONS="python3.11 python3.12"
	scripts/setup.sh wheel
	scripts/wheel.sh $(PYTHONS)

clean: ## Remove what was built; .venv stays
	rm -rf build dist

help: ## This list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 14
