# Every target sets up what it needs from nothing: a virtual environment with an editable install and the extras it asks for.

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

# worksteal: the ways that wait for each test take three milliseconds more for it, and most tests take fewer
test: $(V)/.has-test
	@sh tools/browser.sh
	$(V)/bin/python -m pytest -q -n 2 --dist worksteal tests $(ARGS)

# every benchmark, or those in BENCHMARKS, and the tables of README.md and docs/ made from what they found; half an hour
BENCHMARKS ?= first_touch eager compiled jacobians adbench
bench: $(VB)/.has-bench
	set -e; for name in $(BENCHMARKS); do $(VB)/bin/python benchmarks/$$name.py --record $(ARGS); done
	$(VB)/bin/python tools/results.py

# every row of the table with every other library's arrays; what came out goes to tools/foreign.json and docs/operators.md
foreign: $(V)/.has-foreign
	$(V)/bin/python -m tests.foreign.checking --write tools/foreign.json $(ARGS)
	$(V)/bin/python tools/operators.py

# fits on data larger than the memory of two processes, one of which is killed on the way; then the example
cluster: $(V)/.has-test
	CHAINRULE_CLUSTER=1 $(V)/bin/python -m pytest -q tests/chunked/test_cluster.py
	$(V)/bin/python examples/cluster.py $(ARGS)

# the tests that take their `torch` from tests/behaviour.py, run by PyTorch itself, and those that compare with it
oracle: $(VB)/.has-oracle $(VB)/.has-test
	CHAINRULE_ORACLE=1 $(VB)/bin/python -m pytest -q -n 2 -p no:logging $$(grep -rl --include='*.py' '^from behaviour import' tests) $(ARGS) # PyTorch logs what cannot be formatted
	$(VB)/bin/python -m pytest -q -n 2 -m oracle tests $(ARGS)

# random programs: against PyTorch, against differences, against NumPy, compiled against eager, C against Python (python -m tests.fuzz --help)
fuzz: $(VB)/.has-oracle
	$(VB)/bin/python -m tests.fuzz all -n $(N) $(ARGS)

# the public tests of the Array API standard; ARRAY_API_TESTS names a checkout, else the pinned one is cloned
ARRAY_API_TESTS ?= build/array-api-tests
ARRAY_API_TESTS_COMMIT = 55fcc60179efa2680ddd6cd926ddf17b83530e2b
conformance: $(V)/.has-conformance | $(ARRAY_API_TESTS)/array_api_tests
	cd $(ARRAY_API_TESTS) && ARRAY_API_TESTS_MODULE=chainrule.array_api ARRAY_API_TESTS_VERSION=2024.12 \
		$(CURDIR)/$(V)/bin/python -m pytest -q -n 2 -p no:cacheprovider --disable-warnings --disable-deadline --derandomize \
		--max-examples 100 --rootdir=. --xfails-file=$(CURDIR)/tests/array_api/xfails.txt array_api_tests $(ARGS)

build/array-api-tests/array_api_tests:
	git clone --quiet https://github.com/data-apis/array-api-tests build/array-api-tests
	cd build/array-api-tests && git checkout --quiet $(ARRAY_API_TESTS_COMMIT) && git submodule --quiet update --init

# other people's programs, their own suites in an environment of their own, counted against tests/clients/baseline.json
clients:
	$(PYTHON) tools/clients.py $(ARGS)

# every rule of the table, spoilt on purpose: which of them no check finds wrong
mutate: $(V)/.has-test
	$(V)/bin/python -m tests.table.mutate $(ARGS)

# on a computer with a GPU of NVIDIA's: the samples of all rows and operations on it, and how long gradients take
cuda: $(V)/.has-cuda $(V)/.has-test
	$(V)/bin/python -c "import sys, chainrule._src.arrays.gpu as gpu; sys.exit(gpu.why_not() and 'make cuda: nothing is run on hardware: ' + gpu.why_not())"
	$(V)/bin/python -m pytest -q -rs tests/gpu $(ARGS)
	$(V)/bin/python benchmarks/cuda.py

# the pictures of docs/gallery, and what its pages say that the scripts print; --times measures, too, with what is installed beside
gallery: $(V)/.has-test
	$(V)/bin/python tools/gallery.py $(ARGS)

docs: $(V)/.has-docs
	NO_MKDOCS_2_WARNING=1 $(V)/bin/mkdocs build --strict

lint: $(V)/.has-lint
	$(V)/bin/ruff check .
	$(V)/bin/ruff format --check .
	$(V)/bin/mypy
	$(V)/bin/lint-imports

# source distribution and wheel; the wheel is tried in an environment that has NumPy and nothing else
build: $(V)/.has-build
	rm -rf dist build/alone
	$(V)/bin/python -m build --outdir dist
	$(PYTHON) -m venv build/alone
	build/alone/bin/python -m pip install --quiet dist/*.whl
	cd build && alone/bin/chainrule --version && alone/bin/python -W error -c "import chainrule, numpy; print(chainrule.grad(numpy.sin)(0.0))"

# the extension of this checkout, compiled again; `make test` and every other target that installs have done it once
native: build/backend | $(V)/bin/python
	PYTHONPATH=build/backend $(V)/bin/python setup.py --quiet build_ext --inplace --build-temp build/native
	PYTHONPATH=build/backend $(V)/bin/python -c "from chainrule._src.native import why_not; raise SystemExit(why_not or 0)"

# the extension's tests, a fuzz of plans and one of eager operations, under the address and undefined-behaviour sanitizers (GCC, Linux)
sanitize: build/backend | $(V)/bin/python
	PYTHONPATH=$(CURDIR)/build/backend $(V)/bin/python tools/sanitize.py $(ARGS)

build/backend: | $(V)/bin/python
	@$(V)/bin/python -m pip install --quiet --target $@ "setuptools>=77" "numpy>=2.0"

clean:
	rm -rf $(V) $(VB) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f chainrule/_src/native/_loops*.so chainrule/_src/native/_loops*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(V)/bin/python $(VB)/bin/python:
	@echo "making a virtual environment, $(@D:/bin=)"
	@$(PYTHON) -m venv $(@D:/bin=)

$(V)/.has-%: $(BUILT_FROM) | $(V)/bin/python
	@$(V)/bin/python tools/install.py $*
	@touch $@

$(VB)/.has-%: $(BUILT_FROM) | $(VB)/bin/python
	@$(VB)/bin/python tools/install.py $*
	@touch $@
