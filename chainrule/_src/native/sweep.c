/* The backward pass. tape/engine.py calls sweep() and is the reference (_visit); tape/accumulate.py calls write_grads().

   sweep() collects the nodes that the roots depend on and visits them from the newest to the oldest. Simple nodes (no hooks, one output) run
   here, by programs if their VJP rules have them, and runs of elementwise nodes in regions.c. All other nodes are visited in Python, one by one. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdlib.h>

enum { LARGE = 1000 };                   /* as _LARGE of tape/engine.py */

/* ---- the graph of a backward pass */

typedef struct {
    PyObject *edge, *g; /* g: the pending cotangent; NULL before the first contribution, and after the visit */
    long long seq;
    int useful, wanted, owns_sum; /* useful: a wanted edge depends on it; owns_sum: g is a large sum that was allocated here */
} Entry;

typedef struct {
    long long seq;
    Py_ssize_t index;
} ScheduledNode;

typedef struct {
    Entry *entries;
    Py_ssize_t *table;          /* open addressing: edge -> index in `entries` + 1 */
    Py_ssize_t *reached_leaves; /* leaves, in the order of their first contributions */
    ScheduledNode *schedule;    /* nodes and outputs from the oldest to the newest; the first `nremaining` are not visited yet */
    Py_ssize_t count, mask, nremaining, nreached_leaves;
    Py_ssize_t region_end; /* nodes of the schedule from this index on are in no region */
} Graph;

static size_t hash(PyObject *edge) { return ((size_t)edge >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20; }

static Entry *find(const Graph *graph, PyObject *edge) {
    size_t at = hash(edge) & (size_t)graph->mask;
    for (; graph->table[at]; at = (at + 1) & (size_t)graph->mask) {
        if (graph->entries[graph->table[at] - 1].edge == edge) return &graph->entries[graph->table[at] - 1];
    }
    return NULL;
}

static int is_useful(const Graph *graph, PyObject *edge) {
    const Entry *entry = edge == Py_None ? NULL : find(graph, edge);
    return entry != NULL && entry->useful;
}

static int grow(Graph *graph) {
    Py_ssize_t size = graph->mask ? 4 * (graph->mask + 1) : 128, i;
    Entry *entries = PyMem_Realloc(graph->entries, sizeof(Entry) * (size_t)size / 2);
    Py_ssize_t *table = PyMem_Calloc((size_t)size, sizeof(Py_ssize_t));
    if (entries != NULL) graph->entries = entries;
    if (entries == NULL || table == NULL) {
        PyMem_Free(table);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(graph->table);
    graph->table = table;
    graph->mask = size - 1;
    for (i = 0; i < graph->count; i++) {
        size_t at = hash(entries[i].edge) & (size_t)graph->mask;
        while (table[at]) at = (at + 1) & (size_t)graph->mask;
        table[at] = i + 1;
    }
    return 0;
}

static int add_edge(Graph *graph, PyObject *edge) {
    size_t at;
    if (2 * (graph->count + 1) > graph->mask && grow(graph) < 0) return -1;
    at = hash(edge) & (size_t)graph->mask;
    for (; graph->table[at]; at = (at + 1) & (size_t)graph->mask) {
        if (graph->entries[graph->table[at] - 1].edge == edge) return 0;
    }
    graph->entries[graph->count] = (Entry){Py_NewRef(edge), NULL, -1, 0, 0, 0};
    graph->table[at] = ++graph->count;
    return 0;
}

static int is_node(PyObject *edge) { return PyObject_TypeCheck(edge, core.node); }
static int is_output(PyObject *edge) { return Py_TYPE(edge) == core.output; }
static int is_leaf(PyObject *edge) { return Py_TYPE(edge) == core.leaf; }

/* Borrow the edges of a node or an Output; NULL for a leaf, or if they are not a tuple. */
static PyObject *edges_of(PyObject *edge) {
    PyObject *edges = is_node(edge) ? SLOT(edge, core.edges) : is_output(edge) ? SLOT(edge, core.output_edges) : NULL;
    return edges != NULL && PyTuple_CheckExact(edges) ? edges : NULL;
}

static int by_seq(const void *x, const void *y) {
    long long a = ((const ScheduledNode *)x)->seq, b = ((const ScheduledNode *)y)->seq;
    return (a > b) - (a < b);
}

/* Collect the edges that the roots depend on, or those of `order`. 1 done, 0 slow path, -1 error. Runs no Python code. */
static int collect(Graph *graph, PyObject *roots, PyObject *order) {
    Py_ssize_t i, k, listed;
    for (i = 0; order != NULL && i < PyList_GET_SIZE(order); i++) {
        if (add_edge(graph, PyList_GET_ITEM(order, i)) < 0) return -1;
    }
    listed = graph->count;
    for (i = 0; i < PyTuple_GET_SIZE(roots); i++) {
        if (add_edge(graph, PyTuple_GET_ITEM(roots, i)) < 0) return -1;
    }
    for (i = 0; i < graph->count; i++) { /* the list grows during the loop */
        PyObject *edge = graph->entries[i].edge, *edges, *seq;
        if (is_leaf(edge) || (order != NULL && i >= listed)) continue; /* the pass ends at leaves, and at the end of `order` */
        edges = edges_of(edge);
        seq = is_node(edge) ? SLOT(edge, core.seq) : is_output(edge) ? SLOT(edge, core.output_seq) : NULL;
        if (edges == NULL || seq == NULL || !PyLong_CheckExact(seq)) return 0;
        graph->entries[i].seq = PyLong_AsLongLong(seq);
        for (k = 0; k < PyTuple_GET_SIZE(edges); k++) {
            if (PyTuple_GET_ITEM(edges, k) != Py_None && add_edge(graph, PyTuple_GET_ITEM(edges, k)) < 0) return -1;
        }
    }
    if (PyErr_Occurred()) return -1;
    graph->schedule = PyMem_Malloc(sizeof(ScheduledNode) * (size_t)(graph->count + 1));
    graph->reached_leaves = PyMem_Malloc(sizeof(Py_ssize_t) * (size_t)(graph->count + 1));
    if (graph->schedule == NULL || graph->reached_leaves == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = graph->count - 1; i >= 0; i--) { /* often sorted already */
        if (graph->entries[i].seq != -1) graph->schedule[graph->nremaining++] = (ScheduledNode){graph->entries[i].seq, i};
    }
    qsort(graph->schedule, (size_t)graph->nremaining, sizeof(ScheduledNode), by_seq);
    return 1;
}

/* Mark the wanted edges, and all edges that lead to them. */
static int mark_useful(Graph *graph, PyObject *wanted) {
    Py_ssize_t i, k;
    for (i = 0; i < graph->count; i++) {
        Entry *entry = &graph->entries[i];
        entry->wanted = wanted == NULL ? 0 : PySet_Contains(wanted, entry->edge);
        if (entry->wanted < 0) return -1;
        entry->useful = wanted == NULL || entry->wanted;
    }
    for (i = 0; wanted != NULL && i < graph->nremaining; i++) {
        Entry *entry = &graph->entries[graph->schedule[i].index];
        PyObject *edges = edges_of(entry->edge);
        for (k = 0; !entry->useful && k < PyTuple_GET_SIZE(edges); k++) {
            PyObject *below = PyTuple_GET_ITEM(edges, k);
            entry->useful = is_useful(graph, below);
        }
    }
    return 0;
}

static void clear_graph(Graph *graph) {
    Py_ssize_t i;
    for (i = 0; i < graph->count; i++) {
        Py_XDECREF(graph->entries[i].g);
        Py_DECREF(graph->entries[i].edge);
    }
    PyMem_Free(graph->entries);
    PyMem_Free(graph->table);
    PyMem_Free(graph->reached_leaves);
    PyMem_Free(graph->schedule);
}

/* ---- the pass */

typedef struct {
    PyObject *captured;            /* for wanted edges: edge -> cotangent */
    PyObject *freed, *check_saved; /* freed: replaces saved values; NULL to keep them */
    PyObject *traced_at, *state;   /* in a trace, the object with the source location of the pass, and the Sweep; else NULL */
    PyObject *visit;               /* (node, g, useful edges) -> (edges, cotangents) or None: visits nodes that are not simple */
    PyObject *add;                 /* (g, g) -> their sum */
    int wants, records;
    SourceLocation location; /* location: of recorded nodes */
} BackwardPass;

/* Add a cotangent to an edge's pending one (steals g). */
static int accumulate(Graph *graph, const BackwardPass *pass, PyObject *edge, PyObject *g) {
    Entry *entry = find(graph, edge);
    PyObject *total, *before;
    if (entry == NULL) { /* the edge was made by a hook, or is not in the given order */
        Py_DECREF(g);
        return 0;
    }
    if (PyArray_IsScalar(g, Floating) && (entry->g == NULL || pass->traced_at == NULL)) { /* as engine._accumulate: a traced sum keeps its second operand */
        g = as_array(g);
        if (g == NULL) return -1;
    }
    if (entry->g == NULL) {
        entry->g = g;
        if (entry->seq == -1) graph->reached_leaves[graph->nreached_leaves++] = entry - graph->entries;
        return 0;
    }
    before = Py_NewRef(entry->g);
    if (entry->owns_sum && PyArray_CheckExact(g)) {
        total = add_into(before, g);
    } else if (kind_of(before) >= 0 && kind_of(before) == kind_of(g) && PyArray_SAMESHAPE((PyArrayObject *)before, (PyArrayObject *)g)) {
        total = add_arrays(before, g);
    } else {
        PyObject *both[] = {before, g};
        if (pass->traced_at != NULL) total = enter_pass_error_state() == 0 ? sum_traced(before, g, pass->traced_at) : NULL;
        else total = pass->records ? NULL : add_levels(before, g);
        if (total == NULL && !PyErr_Occurred()) total = PyObject_Vectorcall(pass->add, both, 2, NULL);
    }
    entry->owns_sum |= total != NULL && PyArray_CheckExact(before) && PyArray_SIZE((PyArrayObject *)before) > LARGE; /* engine._LARGE */
    Py_DECREF(before);
    Py_DECREF(g);
    if (total == NULL) return -1;
    Py_XSETREF(entry->g, total);
    return 0;
}

/* Store the cotangent of one output of a node with several (steals g). */
static int accumulate_output(Graph *graph, const BackwardPass *pass, PyObject *output, PyObject *g) {
    PyObject *node = SLOT(output, core.output_node), *parts, *total, *both[2];
    Entry *entry = node == NULL ? NULL : find(graph, node);
    Py_ssize_t at = entry == NULL ? -1 : PyLong_AsSsize_t(SLOT(output, core.output_index));
    if (entry == NULL || at < 0) {
        Py_DECREF(g);
        return entry == NULL ? 0 : -1;
    }
    if (entry->g == NULL) {
        PyObject *outputs = PyDict_GetItemString(SLOT(node, core.params), "_outputs");
        Py_ssize_t i, n = outputs != NULL && PyTuple_CheckExact(outputs) ? PyTuple_GET_SIZE(outputs) : at + 1;
        entry->g = PyList_New(n);
        if (entry->g == NULL) {
            Py_DECREF(g);
            return -1;
        }
        for (i = 0; i < n; i++) PyList_SET_ITEM(entry->g, i, Py_NewRef(Py_None));
    }
    parts = entry->g;
    if (!PyList_CheckExact(parts) || at >= PyList_GET_SIZE(parts)) {
        Py_DECREF(g);
        PyErr_SetString(PyExc_SystemError, "a node has fewer outputs than cotangents");
        return -1;
    }
    if (PyList_GET_ITEM(parts, at) == Py_None) return PyList_SetItem(parts, at, g);
    both[0] = Py_NewRef(PyList_GET_ITEM(parts, at));
    both[1] = g;
    total = PyObject_Vectorcall(pass->add, both, 2, NULL);
    Py_DECREF(both[0]);
    Py_DECREF(g);
    return total == NULL ? -1 : PyList_SetItem(parts, at, total);
}

/* Add the cotangents that a rule returned. */
static int accumulate_all(Graph *graph, const BackwardPass *pass, PyObject *edges, PyObject *grads) {
    Py_ssize_t i, n;
    int done = 0;
    grads = PySequence_Fast(grads, "a rule returns a tuple of cotangents");
    if (grads == NULL) return -1;
    n = PyTuple_GET_SIZE(edges);
    for (i = 0; i < n && i < PySequence_Fast_GET_SIZE(grads) && done == 0; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i), *grad = PySequence_Fast_GET_ITEM(grads, i);
        if (edge != Py_None && grad != Py_None) done = accumulate(graph, pass, edge, Py_NewRef(grad));
    }
    Py_DECREF(grads);
    return done;
}

static int is_elementwise(PyObject *node) {
    PyObject *kind = SLOT(SLOT(node, core.prim), core.prim_kind);
    return kind != NULL && PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "elementwise") == 0;
}

static int is_simple_node(PyObject *node, PyObject *g) {
    PyObject *saved;
    if (!is_node(node) || SLOT(node, core.hooks) != Py_None || PyList_CheckExact(g)) return 0;
    saved = SLOT(node, core.saved);
    return saved != NULL && Py_TYPE(saved) != core.freed && PyTuple_Check(saved);
}

/* Return the node's edges, with None in place of edges that lead to no wanted edge. */
static PyObject *useful_edges(const Graph *graph, PyObject *node, int *any) {
    PyObject *edges = Py_XNewRef(edges_of(node)), *kept;
    Py_ssize_t i, n;
    int all = 1;
    *any = 0;
    if (edges == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the edges of a node were removed during the backward pass");
        return NULL;
    }
    n = PyTuple_GET_SIZE(edges);
    for (i = 0; i < n; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        int useful = is_useful(graph, edge);
        *any |= useful;
        all &= useful || edge == Py_None;
    }
    if (all) return edges;
    kept = PyTuple_New(n);
    for (i = 0; kept != NULL && i < n; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        PyTuple_SET_ITEM(kept, i, Py_NewRef(is_useful(graph, edge) ? edge : Py_None));
    }
    Py_DECREF(edges);
    return kept;
}

/* Visit a node in Python, and add the cotangents that it returns. */
static int visit_in_python(Graph *graph, const BackwardPass *pass, PyObject *node, PyObject *g) {
    int done = -1, any;
    PyObject *edges = useful_edges(graph, node, &any), *args[] = {node, g, edges}, *found;
    PassErrorState before;
    if (edges == NULL) return -1;
    before = begin_pass_error_state(0);
    found = PyObject_Vectorcall(pass->visit, args, 3, NULL); /* user hooks may run */
    end_pass_error_state(before);
    Py_DECREF(edges);
    if (found == Py_None) {
        done = 0;
    } else if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2) {
        if (is_output(node)) done = accumulate_output(graph, pass, node, Py_NewRef(PyTuple_GET_ITEM(found, 1)));
        else if (PyTuple_CheckExact(PyTuple_GET_ITEM(found, 0))) done = accumulate_all(graph, pass, PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1));
    }
    if (found != NULL && done < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "visit must return a pair or None");
    Py_XDECREF(found);
    return done;
}

/* Whether any array was written in place since a node was made. */
static int was_written_since(PyObject *node) { return PyLong_AsLongLong(SLOT(core.clock, core.latest)) > PyLong_AsLongLong(SLOT(node, core.seq)); }

/* Whether the VJP rules of an op are internal: tape.fp_warnings.is_ours */
static int is_listed_op(PyObject *prim) {
    return SLOT(prim, core.prim_listed) == Py_True && PyUnicode_CompareWithASCIIString(SLOT(prim, core.prim_kind), "function") != 0;
}

/* Run the VJP rules of a simple node. */
static int run_simple(Graph *graph, const BackwardPass *pass, PyObject *node, PyObject *g, PyObject *edges) {
    static PyObject *node_name;
    PyObject *saved = Py_NewRef(SLOT(node, core.saved)), *rule_grads[MAX_RULE_OPERANDS] = {NULL}, *grads;
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    int done = 0;
    if (PyTuple_GET_SIZE(saved) > 0 && was_written_since(node)) {
        PyObject *checked = PyObject_CallOneArg(pass->check_saved, node);
        if (checked == NULL) done = -1;
        Py_XDECREF(checked);
    }
    if (done == 0 && pass->traced_at != NULL) {
        if (node_name == NULL && (node_name = PyUnicode_InternFromString("node")) == NULL) done = -1;
        else if (PyObject_SetAttr(pass->state, node_name, node) < 0) done = -1; /* fp_warnings.py names its source line */
        else if (is_listed_op(SLOT(node, core.prim))) done = enter_pass_error_state() < 0 ? -1 : trace_rules(node, g, saved, edges, pass->traced_at, rule_grads);
        if (done == 0) {
            for (i = 0; i < n && i < MAX_RULE_OPERANDS; i++) Py_XDECREF(rule_grads[i]);
            Py_DECREF(saved);
            return visit_in_python(graph, pass, node, g);
        }
        if (done > 0 && pass->freed != NULL && PyTuple_GET_SIZE(saved) > 0) Py_XSETREF(SLOT(node, core.saved), Py_NewRef(pass->freed));
    } else if (done == 0 && pass->records) {
        done = record_rule(node, g, saved, edges, rule_grads, pass->location);
        if (done == 0) {
            Py_DECREF(saved);
            return visit_in_python(graph, pass, node, g);
        }
    } else if (done == 0) {
        if (pass->freed != NULL && PyTuple_GET_SIZE(saved) > 0) Py_XSETREF(SLOT(node, core.saved), Py_NewRef(pass->freed));
        done = run_rule(node, g, saved, edges, rule_grads);
        if (done == 0) done = run_level_rule(node, g, saved, edges, rule_grads);
        if (done == 0) {
            PyObject *args[] = {node, g, saved, edges};
            if (is_listed_op(SLOT(node, core.prim))) {
                grads = call_in_error_state(SLOT(node, core.pullback), args, 4, NULL);
            } else { /* a user's function */
                PyObject *rule = Py_NewRef(SLOT(node, core.pullback));
                PassErrorState before = begin_pass_error_state(0);
                grads = PyObject_Vectorcall(rule, args, 4, NULL);
                end_pass_error_state(before);
                Py_DECREF(rule);
            }
            done = grads == NULL ? -1 : accumulate_all(graph, pass, edges, grads);
            Py_XDECREF(grads);
            Py_DECREF(saved);
            return done;
        }
    }
    for (i = 0; i < n && i < MAX_RULE_OPERANDS; i++) {
        if (rule_grads[i] == NULL) continue;
        if (done == 1 && accumulate(graph, pass, PyTuple_GET_ITEM(edges, i), rule_grads[i]) < 0) done = -1;
        else if (done < 0) Py_DECREF(rule_grads[i]);
    }
    Py_DECREF(saved);
    return done < 0 ? -1 : 0;
}

/* Visit the next node. */
static int visit(Graph *graph, const BackwardPass *pass, Entry *entry) {
    PyObject *node = entry->edge, *g = entry->g, *edges = NULL; /* the graph holds the node */
    int done = 0, any = 0;
    entry->g = NULL;
    if (is_output(node) && SLOT(node, core.output_hooks) == Py_None) {
        if (entry->wanted) done = PyDict_SetItem(pass->captured, node, g);
        if (done == 0) done = accumulate_output(graph, pass, node, Py_NewRef(g));
    } else if (!is_simple_node(node, g)) {
        done = visit_in_python(graph, pass, node, g);
    } else {
        edges = useful_edges(graph, node, &any);
        if (edges == NULL || (entry->wanted && PyDict_SetItem(pass->captured, node, g) < 0)) done = -1;
        if (done == 0 && any) done = run_simple(graph, pass, node, g, edges);
    }
    Py_XDECREF(edges);
    Py_DECREF(g);
    return done;
}

/* Return the pending cotangents of the leaves, and of roots that lead to no wanted edge: their hooks run all the same. */
static PyObject *pending_cotangents(const Graph *graph, PyObject *roots) {
    PyObject *pending = PyDict_New();
    Py_ssize_t i;
    int failed = pending == NULL;
    for (i = 0; i < PyTuple_GET_SIZE(roots) && !failed; i++) {
        const Entry *entry = find(graph, PyTuple_GET_ITEM(roots, i));
        if (!entry->useful && entry->g != NULL) failed = PyDict_SetItem(pending, entry->edge, entry->g) < 0;
    }
    for (i = 0; i < graph->nreached_leaves && !failed; i++) {
        const Entry *entry = &graph->entries[graph->reached_leaves[i]];
        failed = PyDict_SetItem(pending, entry->edge, entry->g) < 0;
    }
    if (failed) Py_CLEAR(pending);
    return pending;
}

/* ---- regions: see regions.c */

/* number of elements from which nodes are computed in regions; above DIRECT_MOST, also single nodes are */
static npy_intp region_from = 1024;

/* Append a node of the schedule to a region. 1 done, 0 if the region ends before it, -1 error */
static int append_entry(const Graph *graph, NodeRegion *region, const Entry *entry) {
    PyObject *node = entry->edge, *pending[MAX_RULE_OPERANDS + 1] = {entry->g}, *edges;
    Py_ssize_t i;
    int any, done = 0;
    if (entry->wanted || !is_simple_node(node, entry->g == NULL ? node : entry->g) || !is_elementwise(node) || !is_listed_op(SLOT(node, core.prim))) return 0;
    if (PyTuple_GET_SIZE(SLOT(node, core.saved)) > 0 && was_written_since(node)) return 0;
    edges = useful_edges(graph, node, &any);
    if (edges == NULL) return -1;
    for (i = 0; i < PyTuple_GET_SIZE(edges) && i < MAX_RULE_OPERANDS; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        const Entry *to = edge == Py_None ? NULL : find(graph, edge);
        pending[i + 1] = to == NULL ? NULL : to->g;
        if (edge != Py_None && (to == NULL || is_output(edge))) any = 0;
    }
    if (any && PyTuple_GET_SIZE(edges) <= MAX_RULE_OPERANDS) done = append_to_region(region, node, edges, pending);
    Py_DECREF(edges);
    return done;
}

/* Store the cotangents that leave a region, and remove its nodes from the schedule. */
static int leave_region(Graph *graph, const BackwardPass *pass, NodeRegion *region, Py_ssize_t end) {
    Py_ssize_t i;
    for (i = 0; i < leaving_edges(region); i++) {
        int is_new;
        PyObject *edge, *g = take_cotangent(region, (int)i, &edge, &is_new);
        Entry *entry = find(graph, edge);
        if (g == NULL && PyErr_Occurred()) return -1;
        if (g == NULL) { /* a node of the region */
            Py_CLEAR(entry->g);
            if (pass->freed != NULL && PyTuple_GET_SIZE(SLOT(edge, core.saved)) > 0) Py_XSETREF(SLOT(edge, core.saved), Py_NewRef(pass->freed));
            continue;
        }
        if (entry->g == NULL && accumulate(graph, pass, edge, Py_NewRef(g)) < 0) {
            Py_DECREF(g);
            return -1;
        }
        Py_XSETREF(entry->g, g);
        entry->owns_sum = is_new;
    }
    graph->nremaining = end;
    return 0;
}

/* Visit the next nodes as a region. 1 done, 0 if the next node must be visited alone, -1 error */
static int visit_region(Graph *graph, const BackwardPass *pass) {
    const Entry *entry = &graph->entries[graph->schedule[graph->nremaining - 1].index];
    npy_intp size = PyArray_CheckExact(entry->g) ? PyArray_SIZE((PyArrayObject *)entry->g) : 0;
    Py_ssize_t end = graph->nremaining;
    NodeRegion *region;
    int done = 1, nodes = 0;
    if (size < region_from || graph->nremaining > graph->region_end || !is_node(entry->edge) || !is_elementwise(entry->edge)) return 0;
    region = new_region(entry->g);
    if (region == NULL) return 0;
    while (end > 0) {
        entry = &graph->entries[graph->schedule[end - 1].index];
        if (entry->useful && (entry->g != NULL || leads_to(region, entry->edge))) {
            done = append_entry(graph, region, entry);
            if (done != 1) break;
            nodes++;
        }
        end--;
    }
    if (done >= 0) done = nodes >= (size > DIRECT_MOST ? 1 : 2) ? run_region(region) : 0;
    if (done == 1 && leave_region(graph, pass, region, end) < 0) done = -1;
    if (done == 0) graph->region_end = end > 0 ? end : 0;
    free_region(region);
    return done;
}

static PyObject *or_null(PyObject *x) { return x == Py_None ? NULL : x; }

/* sweep(roots, cotangents, order, wanted, captured, freed, keep, records, check_saved, visit, add, traced) -> the pending cotangents, or None
   if Python must do the whole pass.
   order: the nodes to visit, or None for all; freed: replaces saved values, and has the source location of recorded nodes and traced calls;
   traced: the Sweep if this thread is traced, or None */
static PyObject *sweep(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Graph graph = {0};
    PyObject *pending = NULL, *wanted, *roots, *cotangents;
    Py_ssize_t i;
    PassErrorState before;
    int done;
    unsigned visited = 0;
    BackwardPass pass = {0};
    (void)module;
    if (nargs != 12 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1])
        || (args[2] != Py_None && !PyList_CheckExact(args[2])) || (args[3] != Py_None && !PyAnySet_Check(args[3])) || !PyDict_CheckExact(args[4])) {
        PyErr_SetString(PyExc_TypeError, "sweep takes (roots, cotangents, order, wanted, captured, freed, keep, records, check_saved, visit, add, traced), by position");
        return NULL;
    }
    if (!core.enabled) Py_RETURN_NONE;
    wanted = or_null(args[3]);
    pass.captured = args[4];
    pass.freed = args[6] == Py_True ? NULL : args[5];
    pass.records = args[7] == Py_True;
    pass.check_saved = args[8];
    pass.visit = args[9];
    pass.add = args[10];
    pass.state = or_null(args[11]);
    pass.traced_at = pass.state == NULL ? NULL : args[5];
    roots = PyList_AsTuple(args[0]);
    cotangents = PyList_AsTuple(args[1]);
    done = roots == NULL || cotangents == NULL ? -1 : collect(&graph, roots, or_null(args[2]));
    if (done == 0 || (done > 0 && PyTuple_GET_SIZE(roots) != PyTuple_GET_SIZE(cotangents))) {
        pending = Py_NewRef(Py_None);
        goto end;
    }
    done = done < 0 ? -1 : mark_useful(&graph, wanted);
    if (done == 0 && pass.records) {
        pass.location.code = PyObject_GetAttrString(args[5], "code");
        pass.location.lasti = PyObject_GetAttrString(args[5], "lasti");
        if (pass.location.code == NULL || pass.location.lasti == NULL) done = -1;
        if (done < 0 && !PyErr_Occurred()) PyErr_NoMemory(); /* Python's attribute look-up may fail without an error */
    }
    graph.region_end = graph.count + 1;
    before = begin_pass_error_state(1);
    for (i = 0; done == 0 && i < PyTuple_GET_SIZE(roots); i++) done = accumulate(&graph, &pass, PyTuple_GET_ITEM(roots, i), Py_NewRef(PyTuple_GET_ITEM(cotangents, i)));
    while (done == 0 && graph.nremaining > 0) {
        Entry *entry = &graph.entries[graph.schedule[graph.nremaining - 1].index];
        if (entry->g == NULL || !entry->useful) {
            graph.nremaining--;
            continue;
        }
        if (!pass.records && pass.traced_at == NULL && is_simple_node(entry->edge, entry->g)) {
            done = visit_region(&graph, &pass);
            if (done != 0) {
                done = done < 0 ? -1 : PyErr_CheckSignals();
                continue;
            }
        }
        graph.nremaining--;
        done = visit(&graph, &pass, entry);
        if (done == 0 && (++visited & 255) == 0) done = PyErr_CheckSignals();
    }
    end_pass_error_state(before);
    if (done == 0) pending = pending_cotangents(&graph, roots);
    Py_XDECREF(pass.location.code);
    Py_XDECREF(pass.location.lasti);
end:
    clear_graph(&graph);
    Py_XDECREF(roots);
    Py_XDECREF(cotangents);
    return pending;
}

/* ---- gradients of leaves */

#define MAX_LEAVES 64

/* Whether a gradient can be added in place: the old one has equal dtype and shape, is small, and only the leaf refers to it (accumulate._may_add_to). */
static int can_add_in_place(PyObject *leaf, PyObject *grad, PyObject *g) {
    PyObject *raw = Py_TYPE(grad) == core.tensor ? SLOT(grad, core.raw) : NULL;
    PyArrayObject *old = (PyArrayObject *)raw;
    if (raw == NULL || SLOT(grad, core.edge) != Py_None || kind_of(raw) < 0 || kind_of(raw) != kind_of(g) || SLOT(leaf, core.leaf_grad) != raw || Py_REFCNT(raw) != 2) return 0;
    return PyArray_BASE(old) == NULL && PyArray_ISCARRAY(old) && PyArray_ISCARRAY_RO((PyArrayObject *)g) && PyArray_SAMESHAPE(old, (PyArrayObject *)g) && PyArray_SIZE(old) > 0 && PyArray_SIZE(old) <= DIRECT_MOST;
}

static PyObject *grad_of(PyObject *tensor) {
    PyObject *grad = SLOT(tensor, core.grad);
    return grad == Py_None ? NULL : grad;
}

/* Return the last passes of a leaf, at most `kept_passes`, and this one. */
static PyObject *passes_of(PyObject *leaf, PyObject *current_pass, Py_ssize_t kept_passes) {
    PyObject *before = Py_NewRef(SLOT(leaf, core.leaf_passes)), *passes;
    Py_ssize_t n = PyTuple_GET_SIZE(before), kept = n < kept_passes ? n : kept_passes, i;
    passes = PyTuple_New(kept + 1);
    for (i = 0; passes != NULL && i < kept; i++) PyTuple_SET_ITEM(passes, i, Py_NewRef(PyTuple_GET_ITEM(before, n - kept + i)));
    if (passes != NULL) PyTuple_SET_ITEM(passes, kept, Py_NewRef(current_pass));
    Py_DECREF(before);
    return passes;
}

/* One write of a gradient, with all objects that it needs. */
typedef struct {
    PyObject *leaf, *tensor, *new_grad, *old_array, *passes, *added; /* new_grad: the new .grad, NULL to add to the old one; old_array: the array before */
} GradWrite;

static int prepare_write(GradWrite *write, PyObject *g, PyObject *const *args, PyObject *seen_ids) {
    PyObject *id, *added = SLOT(write->leaf, core.leaf_added);
    int own, view;
    if (g == NULL || !PyArray_CheckExact(g) || !PyLong_CheckExact(added) || !PyTuple_CheckExact(SLOT(write->leaf, core.leaf_passes))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the gradients of a backward pass were changed while they were written");
        return -1;
    }
    if (grad_of(write->tensor) != NULL) {
        write->added = PyLong_FromLongLong(PyLong_AsLongLong(added) + 1);
        write->passes = passes_of(write->leaf, args[1], PyLong_AsSsize_t(args[4]));
        return write->passes == NULL || write->added == NULL ? -1 : 0;
    }
    id = PyLong_FromVoidPtr(g);
    view = PyArray_BASE((PyArrayObject *)g) != NULL;
    own = id == NULL ? -1 : !view ? !PySet_Contains(args[3], id) && !PySet_Contains(seen_ids, id) : 0;
    if (own >= 0 && PySet_Add(seen_ids, id) < 0) own = -1;
    Py_XDECREF(id);
    if (own < 0) return -1;
    write->passes = PyTuple_Pack(1, args[1]);
    write->added = PyLong_FromLong(1);
    write->new_grad = new_tensor(own ? Py_NewRef(g) : PyArray_NewCopy((PyArrayObject *)g, view ? NPY_CORDER : NPY_KEEPORDER), Py_NewRef(Py_None), args[2]);
    if (write->new_grad == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    return write->passes == NULL || write->added == NULL || write->new_grad == NULL ? -1 : 0;
}

PyObject *referent(PyObject *ref) {
#if PY_VERSION_HEX < 0x030D0000
    return PyWeakref_GetObject(ref);
#else
    PyObject *object;
    if (PyWeakref_GetRef(ref, &object) < 0) return NULL;
    if (object == NULL) return Py_None;
    Py_DECREF(object); /* another reference keeps it alive: no code runs before the caller takes one */
    return object;
#endif
}

/* write_grads(arrived, freed, cut, escaped, kept_passes): set .grad of all leaves to the cotangents in `arrived`, or add to it. Return False, without a
   write, if a leaf needs the slow path. `escaped`: the ids of arrays that other code holds; `kept_passes`: the number of earlier passes that a leaf keeps. The caller holds the lock of tape/accumulate.py. */
static PyObject *write_grads(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    GradWrite writes[MAX_LEAVES] = {{NULL}};
    PyObject *leaf, *g, *seen_ids;
    Py_ssize_t at = 0, n = 0, i;
    int done = 0, found = 0;
    (void)module;
    if (nargs != 5 || !PyDict_CheckExact(args[0]) || !PySet_Check(args[3]) || !PyLong_CheckExact(args[4]) || PyLong_AsSsize_t(args[4]) < 0) {
        if (PyErr_Occurred()) return NULL;
        PyErr_SetString(PyExc_TypeError, "write_grads takes (arrived, freed, cut, escaped, kept_passes), by position");
        return NULL;
    }
    if (!is_fast_path() || PyDict_GET_SIZE(args[0]) > MAX_LEAVES) Py_RETURN_FALSE;
    while (PyDict_Next(args[0], &at, &leaf, &g)) { /* this loop runs no Python code */
        PyObject *ref = is_leaf(leaf) ? SLOT(leaf, core.leaf_tensor) : NULL, *tensor;
        if (ref == NULL || !PyWeakref_CheckRef(ref) || !PyArray_CheckExact(g) || SLOT(leaf, core.leaf_hooks) != Py_None) Py_RETURN_FALSE;
        tensor = referent(ref);
        if (tensor == NULL || !PyObject_TypeCheck(tensor, core.tensor)) Py_RETURN_FALSE;
        if (SLOT(tensor, core.edge) == NULL || SLOT(tensor, core.edge) == Py_None || (grad_of(tensor) != NULL && !can_add_in_place(leaf, grad_of(tensor), g))) Py_RETURN_FALSE;
        writes[n].tensor = tensor;
        writes[n++].leaf = leaf;
    }
    for (i = 0; i < n; i++) {
        Py_INCREF(writes[i].tensor); /* an allocation may run the garbage collector, and so any code */
        Py_INCREF(writes[i].leaf);
    }
    seen_ids = PySet_New(NULL);
    if (seen_ids == NULL) done = -1;
    for (i = 0; i < n && done == 0; i++) {
        g = Py_XNewRef(PyDict_GetItemWithError(args[0], writes[i].leaf));
        done = prepare_write(&writes[i], g, args, seen_ids);
        Py_XDECREF(g);
    }
    Py_XDECREF(seen_ids);
    for (i = 0; i < n && done == 0; i++) { /* check again, because other code may have run */
        PyObject *grad = grad_of(writes[i].tensor);
        g = PyDict_GetItemWithError(args[0], writes[i].leaf);
        if ((grad == NULL) != (writes[i].new_grad != NULL) || g == NULL || (grad != NULL && !can_add_in_place(writes[i].leaf, grad, g))) done = 1;
    }
    for (i = 0; i < n && done == 0; i++) { /* this loop cannot fail, and runs no other code */
        PyObject *passes = SLOT(writes[i].leaf, core.leaf_passes), *added = SLOT(writes[i].leaf, core.leaf_added);
        SLOT(writes[i].leaf, core.leaf_passes) = writes[i].passes;
        SLOT(writes[i].leaf, core.leaf_added) = writes[i].added;
        writes[i].passes = passes; /* released below */
        writes[i].added = added;
        if (writes[i].new_grad == NULL) {
            found |= add_in_place(SLOT(grad_of(writes[i].tensor), core.raw), PyDict_GetItemWithError(args[0], writes[i].leaf));
        } else {
            PyObject *before = SLOT(writes[i].tensor, core.grad), *array = Py_NewRef(SLOT(writes[i].new_grad, core.raw));
            SLOT(writes[i].tensor, core.grad) = writes[i].new_grad;
            writes[i].new_grad = before;
            writes[i].old_array = SLOT(writes[i].leaf, core.leaf_grad);
            SLOT(writes[i].leaf, core.leaf_grad) = array;
        }
    }
    if (found && done == 0 && report_exceptions("add", found) < 0) done = -1;
    for (i = 0; i < n; i++) {
        Py_XDECREF(writes[i].new_grad);
        Py_XDECREF(writes[i].old_array);
        Py_XDECREF(writes[i].passes);
        Py_XDECREF(writes[i].added);
        Py_DECREF(writes[i].tensor);
        Py_DECREF(writes[i].leaf);
    }
    return done < 0 ? NULL : PyBool_FromLong(done == 0);
}

/* reaches_outside(roots, began, own): whether the roots depend on a leaf that is older than `began` and not in `own`. None: slow path. */
static PyObject *reaches_outside(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Graph graph = {0};
    PyObject *roots;
    long long began;
    Py_ssize_t i, k;
    int done, found = 0;
    (void)module;
    if (nargs != 3 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "reaches_outside takes (roots, began, own), by position");
        return NULL;
    }
    began = PyLong_AsLongLong(args[1]);
    if (began == -1 && PyErr_Occurred()) return NULL;
    if (!core.enabled) Py_RETURN_NONE;
    roots = PyList_AsTuple(args[0]);
    done = roots == NULL ? -1 : collect(&graph, roots, NULL);
    Py_XDECREF(roots); /* the graph holds the roots */
    for (i = 0; done == 1 && i < graph.count && !found; i++) {
        PyObject *edge = graph.entries[i].edge;
        if (!is_leaf(edge) || PyLong_AsLongLong(SLOT(edge, core.leaf_seq)) >= began) continue;
        for (k = 0; k < PyList_GET_SIZE(args[2]) && PyList_GET_ITEM(args[2], k) != edge; k++) {}
        found = k == PyList_GET_SIZE(args[2]);
    }
    clear_graph(&graph);
    if (done < 0 || PyErr_Occurred()) return NULL;
    if (done == 0) Py_RETURN_NONE;
    return PyBool_FromLong(found);
}

/* set_region_size(n): compute nodes in regions from n elements on, and return the previous number */
static PyObject *set_region_size(PyObject *module, PyObject *size) {
    npy_intp before = region_from, n = PyLong_AsSsize_t(size);
    (void)module;
    if (n == -1 && PyErr_Occurred()) return NULL;
    region_from = n;
    return PyLong_FromSsize_t(before);
}

PyMethodDef sweep_functions[] = {
    {"set_region_size", set_region_size, METH_O, "set_region_size(n): compute nodes in regions from n elements on; return the previous number"},
    {"reaches_outside", (PyCFunction)(void (*)(void))reaches_outside, METH_FASTCALL, "reaches_outside(roots, began, own): return what engine.reaches_outside returns, or None"},
    {"sweep", (PyCFunction)(void (*)(void))sweep, METH_FASTCALL, "sweep(roots, cotangents, order, wanted, captured, freed, keep, records, check_saved, visit, add, traced): return the pending cotangents, or None"},
    {"write_grads", (PyCFunction)(void (*)(void))write_grads, METH_FASTCALL, "write_grads(arrived, freed, cut, escaped, kept_passes): return whether the .grad of all leaves was written"},
    {NULL, NULL, 0, NULL},
};
