# Every target creates the virtual environment that it needs, with an editable install and the required extras.

PYTHON ?= python3
ARGS ?=
N ?= 1000
V := .venv
VB := .venv-bench
BUILT_FROM := pyproject.toml setup.py $(wildcard chainrule/_src/native/*.[ch])

export MPLBACKEND ?= Agg
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test foreign bench cluster cuda oracle fuzz conformance clients mutate lint gallery docs build native sanitize clean
.NOTPARALLEL:
.PRECIOUS: .venv-3.%/.has-core

demo: $(V)/.has-examples
	$(V)/bin/python examples/seeds.py
	$(V)/bin/python examples/digits.py
	$(V)/bin/python examples/curve_fit.py
	$(V)/bin/python examples/compiled_fit.py

# worksteal: the other schedulers add three milliseconds per test, more than most tests take
test: $(V)/.has-test
	@sh tools/browser.sh
	$(V)/bin/python -m pytest -q -n 2 --dist worksteal tests $(ARGS)

# run the core of the tests with another Python that is on this machine, for example with `make test-3.13`
CORE_TESTS := tests/core tests/native tests/test_tiny.py tests/test_import.py
test-3.%: .venv-3.%/.has-core
	.venv-3.$*/bin/python -m pytest -q -n 2 --dist worksteal $(CORE_TESTS) $(ARGS)

# run all benchmarks in one run of about half an hour, and update the tables of README.md and docs/
bench: $(VB)/.has-bench
	$(VB)/bin/python benchmarks/run_all.py $(ARGS)

# test all primitives with other libraries' arrays, and update tools/foreign.json and docs/operators.md
foreign: $(V)/.has-foreign
	$(V)/bin/python -m tests.foreign.checking --write tools/foreign.json $(ARGS)
	$(V)/bin/python tools/operators.py

# test fits on data larger than the memory of two processes, one of which is killed; then run the example
cluster: $(V)/.has-test
	CHAINRULE_CLUSTER=1 $(V)/bin/python -m pytest -q tests/chunked/test_cluster.py
	$(V)/bin/python examples/cluster.py $(ARGS)

# run the tests that import `torch` from tests/behaviour.py on PyTorch, and the tests that compare with PyTorch
oracle: $(VB)/.has-oracle $(VB)/.has-test
	CHAINRULE_ORACLE=1 $(VB)/bin/python -m pytest -q -n 2 -p no:logging $$(grep -rl --include='*.py' '^from behaviour import' tests) $(ARGS) # PyTorch's log messages cannot be formatted
	$(VB)/bin/python -m pytest -q -n 2 -m oracle tests $(ARGS)

# compare random programs with PyTorch, finite differences and NumPy, compiled with eager, C with Python (python -m tests.fuzz --help)
fuzz: $(VB)/.has-oracle
	$(VB)/bin/python -m tests.fuzz all -n $(N) $(ARGS)

# run the tests of the Array API standard, from the checkout ARRAY_API_TESTS or a clone of the pinned commit
ARRAY_API_TESTS ?= build/array-api-tests
ARRAY_API_TESTS_COMMIT = 55fcc60179efa2680ddd6cd926ddf17b83530e2b
conformance: $(V)/.has-conformance | $(ARRAY_API_TESTS)/array_api_tests
	cd $(ARRAY_API_TESTS) && ARRAY_API_TESTS_MODULE=chainrule.array_api ARRAY_API_TESTS_VERSION=2024.12 \
		$(CURDIR)/$(V)/bin/python -m pytest -q -n 2 -p no:cacheprovider --disable-warnings --disable-deadline --derandomize \
		--max-examples 100 --rootdir=. --xfails-file=$(CURDIR)/tests/array_api/xfails.txt array_api_tests $(ARGS)

build/array-api-tests/array_api_tests:
	git clone --quiet https://github.com/data-apis/array-api-tests build/array-api-tests
	cd build/array-api-tests && git checkout --quiet $(ARRAY_API_TESTS_COMMIT) && git submodule --quiet update --init

# run the test suites of other projects in a separate environment, and compare the counts with tests/clients/baseline.json
clients:
	$(PYTHON) tools/clients.py $(ARGS)

# mutate every rule of the table, and list the mutants that no check detects
mutate: $(V)/.has-test
	$(V)/bin/python -m tests.table.mutate $(ARGS)

# on a computer with an NVIDIA GPU: test the samples of all primitives and operations, and measure gradients
cuda: $(V)/.has-cuda $(V)/.has-test
	$(V)/bin/python -c "import sys, chainrule._src.arrays.gpu as gpu; sys.exit(gpu.why_not() and 'make cuda: no GPU available: ' + gpu.why_not())"
	$(V)/bin/python -m pytest -q -rs tests/gpu $(ARGS)
	$(V)/bin/python benchmarks/cuda.py

# update the figures and outputs in docs/gallery; with --times also measure, including other installed libraries
gallery: $(V)/.has-test
	$(V)/bin/python tools/gallery.py $(ARGS)

docs: $(V)/.has-docs
	NO_MKDOCS_2_WARNING=1 $(V)/bin/mkdocs build --strict

lint: $(V)/.has-lint
	$(V)/bin/ruff check .
	$(V)/bin/ruff format --check .
	$(V)/bin/mypy
	$(V)/bin/lint-imports

# build the source distribution and a wheel for each Python on this machine, and try each with only NumPy installed
build: $(V)/.has-build
	rm -rf dist build/pure
	$(V)/bin/python tools/build.py dist

# recompile the extension of this checkout; `make test` and other targets that install it compile it once
native: build/backend | $(V)/bin/python
	PYTHONPATH=build/backend $(V)/bin/python setup.py --quiet build_ext --inplace --build-temp build/native
	PYTHONPATH=build/backend $(V)/bin/python -c "from chainrule._src.native import why_not; raise SystemExit(why_not or 0)"

# run the extension's tests and fuzz tests under the address and undefined-behaviour sanitizers (GCC, Linux)
sanitize: build/backend $(V)/.has-test
	$(V)/bin/python tools/sanitize.py $(ARGS)

build/backend: | $(V)/bin/python
	@$(V)/bin/python -m pip install --quiet --target $@ "setuptools>=77" "numpy>=2.0"

clean:
	rm -rf $(V) $(VB) .venv-3.* build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f chainrule/_src/native/_loops*.so chainrule/_src/native/_loops*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(V)/bin/python $(VB)/bin/python:
	@echo "creating the virtual environment $(@D:/bin=)"
	@$(PYTHON) -m venv $(@D:/bin=)

.venv-3.%/.has-core: $(BUILT_FROM)
	@python="$$($(PYTHON) tools/pythons.py 3.$*)" || { echo "Python 3.$* is not on this machine"; exit 1; }; "$$python" -m venv $(@D)
	@$(@D)/bin/python tools/install.py core
	@touch $@

$(V)/.has-%: $(BUILT_FROM) | $(V)/bin/python
	@$(V)/bin/python tools/install.py $*
	@touch $@

$(VB)/.has-%: $(BUILT_FROM) | $(VB)/bin/python
	@$(VB)/bin/python tools/install.py $*
	@touch $@
