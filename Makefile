# Every target creates its virtual environment, with an editable install and the extras that it needs.

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

demo: $(V)/.has-examples
	$(V)/bin/python examples/seeds.py
	$(V)/bin/python examples/digits.py
	$(V)/bin/python examples/curve_fit.py
	$(V)/bin/python examples/compiled_fit.py

# worksteal: the other modes add three milliseconds per test, and most tests take less
test: $(V)/.has-test
	@sh tools/browser.sh
	$(V)/bin/python -m pytest -q -n 2 --dist worksteal tests $(ARGS)

# run all benchmarks, or those in BENCHMARKS, and generate the tables of README.md and docs/; takes half an hour
BENCHMARKS ?= first_touch eager compiled jacobians adbench
bench: $(VB)/.has-bench
	set -e; for name in $(BENCHMARKS); do $(VB)/bin/python benchmarks/$$name.py --record $(ARGS); done
	$(VB)/bin/python tools/results.py

# run every primitive with every other library's arrays; the results are written to tools/foreign.json and docs/operators.md
foreign: $(V)/.has-foreign
	$(V)/bin/python -m tests.foreign.checking --write tools/foreign.json $(ARGS)
	$(V)/bin/python tools/operators.py

# run fits on data larger than the memory of two processes, one of which is killed during the fit; then run the example
cluster: $(V)/.has-test
	CHAINRULE_CLUSTER=1 $(V)/bin/python -m pytest -q tests/chunked/test_cluster.py
	$(V)/bin/python examples/cluster.py $(ARGS)

# run the tests that import `torch` from tests/behaviour.py with PyTorch itself, and the tests that compare with it
oracle: $(VB)/.has-oracle $(VB)/.has-test
	CHAINRULE_ORACLE=1 $(VB)/bin/python -m pytest -q -n 2 -p no:logging $$(grep -rl --include='*.py' '^from behaviour import' tests) $(ARGS) # PyTorch logs messages that cannot be formatted
	$(VB)/bin/python -m pytest -q -n 2 -m oracle tests $(ARGS)

# run random programs against PyTorch, finite differences and NumPy, compiled against eager, C against Python (python -m tests.fuzz --help)
fuzz: $(VB)/.has-oracle
	$(VB)/bin/python -m tests.fuzz all -n $(N) $(ARGS)

# run the public tests of the Array API standard in the checkout ARRAY_API_TESTS; by default the pinned version is cloned
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

# break every rule of the op table on purpose, and print the rules that no check detects
mutate: $(V)/.has-test
	$(V)/bin/python -m tests.table.mutate $(ARGS)

# on a computer with an NVIDIA GPU: run the samples of all operations, and measure the times of gradients
cuda: $(V)/.has-cuda $(V)/.has-test
	$(V)/bin/python -c "import sys, chainrule._src.arrays.gpu as gpu; sys.exit(gpu.why_not() and 'make cuda: nothing is run on hardware: ' + gpu.why_not())"
	$(V)/bin/python -m pytest -q -rs tests/gpu $(ARGS)
	$(V)/bin/python benchmarks/cuda.py

# regenerate the figures of docs/gallery and the printed output on its pages; --times also measures, including installed alternatives
gallery: $(V)/.has-test
	$(V)/bin/python tools/gallery.py $(ARGS)

docs: $(V)/.has-docs
	NO_MKDOCS_2_WARNING=1 $(V)/bin/mkdocs build --strict

lint: $(V)/.has-lint
	$(V)/bin/ruff check .
	$(V)/bin/ruff format --check .
	$(V)/bin/mypy
	$(V)/bin/lint-imports

# build source distribution and wheel; the wheel is tested in an environment with only NumPy
build: $(V)/.has-build
	rm -rf dist build/alone
	$(V)/bin/python -m build --outdir dist
	$(PYTHON) -m venv build/alone
	build/alone/bin/python -m pip install --quiet dist/*.whl
	cd build && alone/bin/chainrule --version && alone/bin/python -W error -c "import chainrule, numpy; print(chainrule.grad(numpy.sin)(0.0))"

# recompile the extension of this checkout; every target that installs chainrule compiles it once
native: build/backend | $(V)/bin/python
	PYTHONPATH=build/backend $(V)/bin/python setup.py --quiet build_ext --inplace --build-temp build/native
	PYTHONPATH=build/backend $(V)/bin/python -c "from chainrule._src.native import why_not; raise SystemExit(why_not or 0)"

# run the extension's tests, random plans and random eager programs under the address and undefined-behaviour sanitizers (GCC, Linux)
sanitize: build/backend | $(V)/bin/python
	PYTHONPATH=$(CURDIR)/build/backend $(V)/bin/python tools/sanitize.py $(ARGS)

build/backend: | $(V)/bin/python
	@$(V)/bin/python -m pip install --quiet --target $@ "setuptools>=77" "numpy>=2.0"

clean:
	rm -rf $(V) $(VB) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f chainrule/_src/native/_loops*.so chainrule/_src/native/_loops*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(V)/bin/python $(VB)/bin/python:
	@echo "creating a virtual environment, $(@D:/bin=)"
	@$(PYTHON) -m venv $(@D:/bin=)

$(V)/.has-%: $(BUILT_FROM) | $(V)/bin/python
	@$(V)/bin/python tools/install.py $*
	@touch $@

$(VB)/.has-%: $(BUILT_FROM) | $(VB)/bin/python
	@$(VB)/bin/python tools/install.py $*
	@touch $@
