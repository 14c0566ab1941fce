/* Nodes, tensors and views, made by writing the slots of their Python classes; the modes of a thread; source locations; cuts; and the hook
   that keeps nodes out of the garbage collector. connect() reads the offsets of the slots. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <structmember.h> /* names of Python 3.11 */

Core core;
const SourceLocation current_frame = {NULL, NULL, 0};

/* ---- modes */

static PyObject *mode_name, *recorder_name, *hooks_name, *watch_name;

PyObject *thread_state(void) {
    static _Thread_local PyObject *state; /* borrowed: it lives as long as the thread */
    if (state == NULL) {
        state = PyObject_GetAttrString(core.local, "__dict__");
        Py_XDECREF(state);
    }
    return state;
}

/* Return the mode of this thread while any thread is in a special mode. An attribute that the thread has not set has its default. */
int special_mode(void) {
    PyObject *state, *mode, *recorder, *hooks, *watch;
    int found = SLOW_PATH, k;
    if (PyList_GET_SIZE(core.watches) > 0) return SLOW_PATH;
    if (mode_name == NULL && ((mode_name = PyUnicode_InternFromString("mode")) == NULL || (recorder_name = PyUnicode_InternFromString("recorder")) == NULL || (watch_name = PyUnicode_InternFromString("watch")) == NULL || (hooks_name = PyUnicode_InternFromString("saved_hooks")) == NULL)) {
        Py_CLEAR(mode_name);
        return -1;
    }
    state = thread_state();
    if (state == NULL || !PyDict_CheckExact(state)) return PyErr_Occurred() ? -1 : SLOW_PATH;
    recorder = PyDict_GetItemWithError(state, recorder_name);
    hooks = PyDict_GetItemWithError(state, hooks_name);
    mode = PyDict_GetItemWithError(state, mode_name);
    watch = PyDict_GetItemWithError(state, watch_name);
    if (mode == NULL) mode = core.modes[0];
    for (k = 0; k < 3; k++) {
        if (mode == core.modes[k]) found = k + RECORDS;
    }
    if (watch != NULL && watch != Py_None) found = SLOW_PATH;
    if (found == RECORDS && hooks != NULL && (!PyTuple_CheckExact(hooks) || PyTuple_GET_SIZE(hooks) > 0)) found = SLOW_PATH;
    if (recorder != NULL && recorder != Py_None) found = found == RECORDS ? TRACES : SLOW_PATH;
    return PyErr_Occurred() ? -1 : found;
}

/* ---- source locations */

static PyObject *last_user_code; /* the last code object that was found to be in a user file */

/* Borrow the frame whose location a node gets; NULL if no Python code is running. */
static PyFrameObject *frame_at(int depth) {
    PyObject *number, *found;
    if (depth == 0) return PyEval_GetFrame();
    number = PyLong_FromLong(depth);
    found = number == NULL ? NULL : PyObject_CallOneArg(core.getframe, number); /* unlike f_back, does not create the frame objects in between */
    Py_XDECREF(number);
    if (found == NULL) PyErr_Clear();
    Py_XDECREF(found);
    return (PyFrameObject *)found;
}

/* Find the user's source location if it is in the current frame: 1, 0 if note_frame() must find it in Python, -1 error. */
static int find_in_frame(PyFrameObject *frame, PyObject **code, long *lasti) {
    int is_user_code = 0;
    if (frame == NULL) return PyErr_Occurred() ? -1 : 0;
    *code = (PyObject *)PyFrame_GetCode(frame);
    is_user_code = *code == last_user_code ? 1 : PySet_Contains(core.user_files, ((PyCodeObject *)*code)->co_filename);
    if (is_user_code == 1) {
        if (*code != last_user_code) Py_XSETREF(last_user_code, Py_NewRef(*code));
        *lasti = PyFrame_GetLasti(frame);
    }
    Py_DECREF(*code); /* the frame has another reference */
    return is_user_code;
}

int find_location(SourceLocation location, PyObject **code, long *lasti) {
    if (location.code == NULL) return find_in_frame(frame_at(location.depth), code, lasti);
    *code = location.code;
    *lasti = PyLong_CheckExact(location.lasti) ? PyLong_AsLong(location.lasti) : -1;
    return 1;
}

/* Write the user's source location into two slots of an object, as note_frame of messages/source_locations.py does. */
int note_location(PyObject *object, Py_ssize_t code_slot, Py_ssize_t lasti_slot, SourceLocation location) {
    PyFrameObject *frame;
    PyObject *args[2], *done, *code;
    long lasti;
    int found;
    if (location.code != NULL) {
        SLOT(object, code_slot) = Py_NewRef(location.code);
        SLOT(object, lasti_slot) = Py_NewRef(location.lasti);
        return 0;
    }
    frame = frame_at(location.depth);
    found = find_in_frame(frame, &code, &lasti);
    if (found < 0) return -1;
    if (found > 0) {
        SLOT(object, code_slot) = Py_NewRef(code);
        SLOT(object, lasti_slot) = PyLong_FromLong(lasti);
        return SLOT(object, lasti_slot) == NULL ? -1 : 0;
    }
    args[0] = object;
    args[1] = frame == NULL ? Py_None : (PyObject *)frame;
    done = PyObject_Vectorcall(core.note_frame, args, 2, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyObject *user_line(SourceLocation location) {
    PyObject *where;
    if (PySet_GET_SIZE(core.unread) > 0) return PyObject_CallNoArgs(core.user_line); /* a thread that formats a message does not record locations */
    where = core.where->tp_alloc(core.where, 0);
    if (where == NULL || note_location(where, core.where_code, core.where_lasti, location) < 0) {
        Py_XDECREF(where);
        return NULL;
    }
    if (SLOT(where, core.where_code) != NULL && SLOT(where, core.where_code) != Py_None) return where;
    Py_DECREF(where);
    Py_RETURN_NONE;
}

PyObject *new_cut(PyObject *kind, PyObject *const *args, Py_ssize_t n, SourceLocation location) {
    PyObject *cut, *sources, *ref;
    Py_ssize_t i;
    int done;
    Py_INCREF(kind);
    cut = core.cut_type->tp_alloc(core.cut_type, 0);
    sources = PyList_New(0);
    done = cut == NULL || sources == NULL ? -1 : 0;
    for (i = 0; i < n && done == 0; i++) {
        if (!PyObject_TypeCheck(args[i], core.tensor) || SLOT(args[i], core.edge) == NULL || SLOT(args[i], core.edge) == Py_None) continue;
        ref = PyWeakref_NewRef(args[i], NULL);
        done = ref == NULL ? -1 : PyList_Append(sources, ref);
        Py_XDECREF(ref);
    }
    if (done == 0) {
        SLOT(cut, core.cut_kind) = Py_NewRef(kind);
        SLOT(cut, core.cut_sources) = Py_NewRef(sources);
        SLOT(cut, core.cut_where) = user_line(location);
        if (SLOT(cut, core.cut_where) == NULL) done = -1;
    }
    Py_DECREF(kind);
    Py_XDECREF(sources);
    if (done < 0) Py_CLEAR(cut);
    return cut;
}

/* ---- the garbage collector

   A node refers to older objects only, so nodes, edges and arrays alone form no cycle. Traversing them again and again while a tape grows would
   be wasted, so nodes are untracked. User objects on a node (hooks, metadata, values of custom functions or pack hooks) can close a cycle.
   Once there are any, retrack() tracks the reachable nodes again before each full collection. */

#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED) /* later collectors do not start full collections themselves */
#define UNTRACKS 1
#else
#define UNTRACKS 0
#endif

/* Whether an object consists of numbers, strings, slices and tuples of them, and so is in no cycle. */
static int is_acyclic(PyObject *x, int depth) {
    Py_ssize_t at = 0, i;
    PyObject *key, *value;
    if (!PyObject_IS_GC(x)) return 1;
    if (PyTuple_CheckExact(x) && depth < 3) {
        for (i = 0; i < PyTuple_GET_SIZE(x); i++) {
            if (!is_acyclic(PyTuple_GET_ITEM(x, i), depth + 1)) return 0;
        }
        return 1;
    }
    if (PyDict_CheckExact(x) && depth < 3) {
        while (PyDict_Next(x, &at, &key, &value)) {
            if (!is_acyclic(value, depth + 1)) return 0;
        }
        return 1;
    }
    return PySlice_Check(x) || x == core.no_params;
}

static void untrack(PyObject *x) {
    if (UNTRACKS && PyTuple_CheckExact(x) && PyTuple_GET_SIZE(x) > 0) PyObject_GC_UnTrack(x);
}

static void track(PyObject *x) {
    if (x != NULL && PyObject_IS_GC(x) && !PyObject_GC_IsTracked(x)) PyObject_GC_Track(x);
}

typedef struct {
    PyObject **nodes; /* nodes with edges that are still to be followed; borrowed, because their owners are alive */
    Py_ssize_t count, size;
    int failed;
} NodeQueue;

static int queue_untracked(PyObject *x, void *arg) {
    NodeQueue *queue = arg;
    if (x == NULL || !PyObject_TypeCheck(x, core.node) || PyObject_GC_IsTracked(x)) return 0;
    if (queue->count == queue->size) {
        Py_ssize_t size = queue->size ? 2 * queue->size : 1024;
        PyObject **more = PyMem_Realloc(queue->nodes, sizeof(PyObject *) * (size_t)size);
        if (more == NULL) {
            queue->failed = 1;
            return 1;
        }
        queue->nodes = more;
        queue->size = size;
    }
    PyObject_GC_Track(x);
    queue->nodes[queue->count++] = x;
    return 0;
}

static PyObject *get_objects; /* gc.get_objects, stored in advance: the collector may run where nothing can be imported */

/* retrack(phase, info): a hook for gc.callbacks */
static PyObject *retrack(PyObject *module, PyObject *args) {
    static PyObject *generation_name;
    PyObject *phase, *info, *generation, *objects;
    NodeQueue queue = {NULL, 0, 0, 0};
    Py_ssize_t i, k;
    (void)module;
    if (!PyArg_ParseTuple(args, "UO!:retrack", &phase, &PyDict_Type, &info)) return NULL;
    if (PyUnicode_CompareWithASCIIString(phase, "start") != 0) Py_RETURN_NONE;
    if (generation_name == NULL && (generation_name = PyUnicode_InternFromString("generation")) == NULL) return NULL;
    generation = PyDict_GetItemWithError(info, generation_name);
    if (generation == NULL || !PyLong_Check(generation) || PyLong_AsLong(generation) < 2) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    objects = PyObject_CallNoArgs(get_objects);
    if (objects == NULL) return NULL;
    for (i = 0; i < PyList_GET_SIZE(objects) && !queue.failed; i++) {
        PyObject *object = PyList_GET_ITEM(objects, i);
        if (Py_TYPE(object)->tp_traverse != NULL) Py_TYPE(object)->tp_traverse(object, queue_untracked, &queue);
    }
    for (i = 0; i < queue.count; i++) { /* the queue grows during the loop */
        PyObject *node = queue.nodes[i], *edges = SLOT(node, core.edges);
        for (k = 0; edges != NULL && PyTuple_CheckExact(edges) && k < PyTuple_GET_SIZE(edges) && !queue.failed; k++) queue_untracked(PyTuple_GET_ITEM(edges, k), &queue);
        track(edges);
    }
    PyMem_Free(queue.nodes);
    Py_DECREF(objects);
    if (queue.failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef retrack_method = {"retrack", retrack, METH_VARARGS, "retrack(phase, info): for gc.callbacks"};

/* Register retrack(), because user objects can be reached from nodes from now on. */
static int register_retrack(void) {
    static int done;
    PyObject *gc, *callbacks, *function;
    int failed = 1;
    if (!UNTRACKS || done) return 0;
    gc = PyImport_ImportModule("gc");
    callbacks = gc == NULL ? NULL : PyObject_GetAttrString(gc, "callbacks");
    if (get_objects == NULL && callbacks != NULL) get_objects = PyObject_GetAttrString(gc, "get_objects");
    function = get_objects == NULL ? NULL : PyCFunction_New(&retrack_method, NULL);
    if (function != NULL && PyList_Check(callbacks)) failed = PyList_Append(callbacks, function);
    if (failed == 1) PyErr_Clear(); /* gc.callbacks was replaced: cycles through nodes are not collected */
    Py_XDECREF(gc);
    Py_XDECREF(callbacks);
    Py_XDECREF(function);
    done = failed != -1;
    return failed == -1 ? -1 : 0;
}

static PyObject *register_user_object(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (register_retrack() < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- nodes and tensors */

/* Untrack a new node if no object in it can be part of a cycle. */
static int untrack_node(PyObject *node) {
    PyObject *saved = SLOT(node, core.saved), *listed = SLOT(SLOT(node, core.prim), core.prim_listed);
    int acyclic = SLOT(node, core.params) == core.no_params || is_acyclic(SLOT(node, core.params), 0);
    if (!UNTRACKS) return 0;
    if (!acyclic || listed != Py_True || !is_acyclic(saved, 0)) return register_retrack();
    untrack(SLOT(node, core.edges));
    untrack(saved);
    PyObject_GC_UnTrack(node);
    return 0;
}

PyObject *new_node(PyObject *prim, PyObject *pullback, PyObject *params, PyObject *edges, PyObject *saved, PyObject *in_avals, SourceLocation location) {
    PyObject *node;
    Py_INCREF(prim);
    pullback = Py_NewRef(pullback == NULL ? Py_None : pullback);
    Py_INCREF(params);
    node = edges == NULL || saved == NULL || in_avals == NULL ? NULL : core.node->tp_alloc(core.node, 0);
    if (node == NULL) {
        Py_DECREF(prim);
        Py_DECREF(pullback);
        Py_DECREF(params);
        Py_XDECREF(edges);
        Py_XDECREF(saved);
        Py_XDECREF(in_avals);
        return NULL;
    }
    SLOT(node, core.prim) = prim;
    SLOT(node, core.pullback) = pullback;
    SLOT(node, core.params) = params;
    SLOT(node, core.edges) = edges;
    SLOT(node, core.saved) = saved;
    SLOT(node, core.in_avals) = in_avals;
    SLOT(node, core.hooks) = Py_NewRef(Py_None);
    SLOT(node, core.seq) = Py_TYPE(core.counter)->tp_iternext(core.counter);
    if (SLOT(node, core.seq) == NULL || note_location(node, core.code, core.lasti, location) < 0 || untrack_node(node) < 0) Py_CLEAR(node);
    return node;
}

PyObject *unrecorded_result(PyObject *data, PyObject *prim, PyObject *const *args, Py_ssize_t n, int mode, SourceLocation location) {
    PyObject *cut = Py_None, *tensor;
    Py_ssize_t i;
    int requires_grad = 0;
    for (i = 0; i < n && mode != SILENT; i++) {
        if (Py_TYPE(args[i]) != core.tensor) continue;
        if (SLOT(args[i], core.edge) != Py_None) requires_grad = 1;
        else if (cut == Py_None && SLOT(args[i], core.cut) != NULL) cut = SLOT(args[i], core.cut);
    }
    cut = requires_grad ? new_cut(mode == RECORDS ? SLOT(prim, core.prim_name) : core.no_grad, args, n, location) : Py_NewRef(cut);
    if (cut == NULL) {
        Py_XDECREF(data);
        return NULL;
    }
    tensor = new_tensor(data, Py_NewRef(Py_None), cut);
    Py_DECREF(cut);
    return tensor;
}

PyObject *new_tensor(PyObject *data, PyObject *edge, PyObject *cut) {
    PyObject *tensor = data == NULL || edge == NULL ? NULL : core.tensor->tp_alloc(core.tensor, 0);
    if (tensor == NULL) {
        Py_XDECREF(data);
        Py_XDECREF(edge);
        return NULL;
    }
    SLOT(tensor, core.raw) = data;
    SLOT(tensor, core.edge) = edge;
    SLOT(tensor, core.cut) = Py_XNewRef(cut);
    return tensor;
}

static int is_none(PyObject *slot) { return slot == NULL || slot == Py_None; }

/* The fast path of tape.view.register_if_view. 1 done (made a view or none), 0 slow path, -1 error. */
static int make_view(PyObject *tensor, PyObject *base, PyObject *prim, PyObject *params, int mode) {
    PyObject *data = SLOT(tensor, core.raw), *source = SLOT(base, core.raw), *root, *before, *views, *view, *ref = NULL, *step, *last;
    if (Py_TYPE(base) != core.tensor || data == NULL || source == NULL) return 0;
    if (!is_traced(data)) { /* operations on traced values that give views are known as such */
        if (!PyArray_CheckExact(data) || !PyArray_CheckExact(source)) return 0;
        root = PyArray_BASE((PyArrayObject *)data);
        if (data != source && root != source) {
            if (root == NULL) return 1;
            if (root != PyArray_BASE((PyArrayObject *)source)) return 0;
        }
    }
    before = SLOT(base, core.tensor_view);
    if (is_none(before)) {
        before = Py_None;
    } else {
        if (Py_TYPE(before) != core.view) return 0;
        base = SLOT(before, core.view_base);
        if (base == NULL || Py_TYPE(base) != core.tensor) return 0;
    }
    views = SLOT(base, core.views);
    if (!is_none(views) && (!PyList_CheckExact(views) || (PyList_GET_SIZE(views) >= 32 && !(PyList_GET_SIZE(views) & (PyList_GET_SIZE(views) - 1))))) return 0; /* Python removes dead references */
    Py_INCREF(base); /* an allocation may run the garbage collector, and so any code */
    Py_INCREF(before);
    step = PyTuple_Pack(2, prim, params);
    last = step == NULL ? NULL : PyTuple_Pack(1, step);
    Py_XDECREF(step);
    view = last == NULL ? NULL : core.view->tp_alloc(core.view, 0);
    if (view == NULL) {
        Py_XDECREF(last);
    } else {
        SLOT(view, core.view_base) = Py_NewRef(base);
        SLOT(view, core.view_last) = last;
        SLOT(view, core.view_origin) = mode != RECORDS ? Py_NewRef(core.no_grad) : before == Py_None ? PyUnicode_New(0, 0) : Py_XNewRef(SLOT(before, core.view_origin));
        SLOT(view, core.view_before) = Py_NewRef(before);
        ref = PyWeakref_NewRef(tensor, NULL);
    }
    if (ref != NULL && is_none(SLOT(base, core.views))) {
        PyObject *empty = PyList_New(0);
        if (empty == NULL) Py_CLEAR(ref);
        else Py_XSETREF(SLOT(base, core.views), empty);
        if (ref != NULL && SLOT(base, core.tensor_view) == NULL) SLOT(base, core.tensor_view) = Py_NewRef(Py_None);
    }
    if (ref != NULL && PyList_Append(SLOT(base, core.views), ref) < 0) Py_CLEAR(ref);
    if (ref != NULL) {
        Py_XSETREF(SLOT(tensor, core.tensor_view), Py_NewRef(view));
        Py_DECREF(ref);
    }
    Py_XDECREF(view);
    Py_DECREF(before);
    Py_DECREF(base);
    return ref == NULL ? -1 : 1;
}

static PyObject *python_register_if_view;

int view_of(PyObject *tensor, PyObject *base, PyObject *prim, PyObject *params, int mode) {
    PyObject *args[] = {tensor, base, prim, params}, *done;
    int found = make_view(tensor, base, prim, params, mode);
    if (found != 0) return found < 0 ? -1 : 0;
    done = PyObject_Vectorcall(python_register_if_view, args, 4, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* new_node(prim, params, edges, saved=(), in_avals=None, pullback=None, depth=3), as tape.node.new_node */
static PyObject *python_new_node(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"prim", "params", "edges", "saved", "in_avals", "pullback", "depth"};
    PyObject *arguments[7] = {NULL}, *pullback;
    Py_ssize_t i, k, named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    SourceLocation location = {NULL, NULL, 2};
    (void)module;
    if (nargs > 7 || nargs + named > 7) goto invalid;
    for (i = 0; i < nargs; i++) arguments[i] = args[i];
    for (i = 0; i < named; i++) {
        for (k = 0; k < 7 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), names[k]) != 0; k++) {}
        if (k == 7 || arguments[k] != NULL) goto invalid;
        arguments[k] = args[nargs + i];
    }
    if (arguments[0] == NULL || arguments[1] == NULL || arguments[2] == NULL || !PyTuple_CheckExact(arguments[2]) || core.node == NULL || !PyObject_TypeCheck(arguments[0], core.primitive)) goto invalid;
    if (arguments[6] != NULL) location.depth = (int)PyLong_AsLong(arguments[6]) - 1; /* this C function has no frame */
    if (PyErr_Occurred()) return NULL;
    pullback = arguments[5] == NULL || arguments[5] == Py_None ? SLOT(arguments[0], core.prim_pullback) : arguments[5];
    return new_node(arguments[0], pullback, arguments[1], Py_NewRef(arguments[2]), Py_NewRef(arguments[3] == NULL ? core.empty_tuple : arguments[3]), Py_NewRef(arguments[4] == NULL ? Py_None : arguments[4]), location);
invalid:
    PyErr_SetString(PyExc_TypeError, "new_node takes (prim, params, edges, saved=(), in_avals=None, pullback=None, depth=3)");
    return NULL;
}

/* ---- connect */

static int find_slot(PyTypeObject *type, const char *name, Py_ssize_t *offset) {
    PyObject *member = PyObject_GetAttrString((PyObject *)type, name);
    if (member == NULL) return -1;
    if (Py_TYPE(member) == &PyMemberDescr_Type && ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX) {
        *offset = ((PyMemberDescrObject *)member)->d_member->offset;
        Py_DECREF(member);
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, name);
    Py_DECREF(member);
    return -1;
}

int find_slots(PyTypeObject *type, const SlotOffset *slots) {
    for (; slots->name != NULL; slots++) {
        if (find_slot(type, slots->name, slots->offset) < 0) return -1;
    }
    return 0;
}

static PyObject *lookup(PyObject *names, const char *name, PyTypeObject *type) {
    PyObject *found = PyDict_GetItemString(names, name); /* borrowed; a reference is taken below */
    if (found == NULL || (type != NULL && !PyObject_TypeCheck(found, type))) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "connect: %s is missing, or of another type", name);
        return NULL;
    }
    return Py_NewRef(found); /* never released: a process imports chainrule once */
}

/* connect(names): set the classes and functions that operations in C use. Operations stay in Python until switch_on(True). */
static PyObject *connect(PyObject *module, PyObject *names) {
    static const SlotOffset of_tensor[] = {{"_raw", &core.raw}, {"_edge", &core.edge}, {"_cut", &core.cut}, {"_grad", &core.grad}, {"_view", &core.tensor_view}, {"_views", &core.views}, {NULL, NULL}};
    static const SlotOffset of_node[] = {{"prim", &core.prim}, {"pullback", &core.pullback}, {"params", &core.params}, {"edges", &core.edges}, {"saved", &core.saved}, {"in_avals", &core.in_avals}, {"hooks", &core.hooks}, {"seq", &core.seq}, {"code", &core.code}, {"lasti", &core.lasti}, {NULL, NULL}};
    static const SlotOffset of_output[] = {{"node", &core.output_node}, {"index", &core.output_index}, {"edges", &core.output_edges}, {"seq", &core.output_seq}, {"hooks", &core.output_hooks}, {NULL, NULL}};
    static const SlotOffset of_leaf[] = {{"tensor", &core.leaf_tensor}, {"grad", &core.leaf_grad}, {"hooks", &core.leaf_hooks}, {"added", &core.leaf_added}, {"passes", &core.leaf_passes}, {"seq", &core.leaf_seq}, {NULL, NULL}};
    static const SlotOffset of_view[] = {{"base", &core.view_base}, {"last", &core.view_last}, {"origin", &core.view_origin}, {"before", &core.view_before}, {NULL, NULL}};
    static const SlotOffset of_clock[] = {{"latest", &core.latest}, {NULL, NULL}};
    static const SlotOffset of_prim[] = {{"pullback", &core.prim_pullback}, {"c_op", &core.prim_op}, {"save_from", &core.prim_save_from}, {"tied", &core.prim_tied}, {"kind", &core.prim_kind}, {"listed", &core.prim_listed}, {"name", &core.prim_name}, {"jvp", &core.prim_jvp}, {"batch", &core.prim_batch}, {NULL, NULL}};
    static const SlotOffset of_written[] = {{"count", &core.written_count}, {"times", &core.written_times}, {"last", &core.written_last}, {NULL, NULL}};
    static const SlotOffset of_where[] = {{"code", &core.where_code}, {"lasti", &core.where_lasti}, {NULL, NULL}};
    static const SlotOffset of_cut[] = {{"kind", &core.cut_kind}, {"sources", &core.cut_sources}, {"where", &core.cut_where}, {NULL, NULL}};
    static const struct {
        const char *name;
        PyTypeObject **type;
        const SlotOffset *slots;
    } classes[] = {{"Tensor", &core.tensor, of_tensor}, {"Node", &core.node, of_node}, {"Output", &core.output, of_output}, {"Leaf", &core.leaf, of_leaf}, {"View", &core.view, of_view}, {"Freed", &core.freed, NULL}, {"Where", &core.where, of_where}, {"Cut", &core.cut_type, of_cut}, {"WriteRecord", &core.written, of_written}, {"Primitive", &core.primitive, of_prim}};
    PyObject *modes, *wrote, *record, *lock, *lender, *unbroadcast, *operations, *plus, *make_op, *trace_value, *trace_rule, *trace_tangent, *protected_function;
    size_t i;
    (void)module;
#if defined(Py_GIL_DISABLED) || defined(PYPY_VERSION)
    PyErr_SetString(PyExc_RuntimeError, "operations in C need the GIL of CPython");
    return NULL;
#endif
    if (!PyDict_CheckExact(names) || core.node != NULL) {
        PyErr_SetString(PyExc_TypeError, "connect takes a dict, once");
        return NULL;
    }
    for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        PyTypeObject *type = (PyTypeObject *)lookup(names, classes[i].name, &PyType_Type);
        if (type == NULL || (classes[i].slots != NULL && find_slots(type, classes[i].slots) < 0)) return NULL;
        *classes[i].type = type;
    }
    core.clock = lookup(names, "CLOCK", NULL);
    if (core.clock == NULL || find_slots(Py_TYPE(core.clock), of_clock) < 0) return NULL;
    modes = lookup(names, "modes", &PyTuple_Type); /* in the order RECORDS, NO_GRAD, SILENT */
    for (i = 0; i < 3 && modes != NULL; i++) core.modes[i] = PyTuple_GetItem(modes, (Py_ssize_t)i);
    core.local = lookup(names, "LOCAL", NULL);
    core.watches = lookup(names, "WATCHES", &PyList_Type);
    core.call_untraced = lookup(names, "call_untraced", NULL);
    core.unread = lookup(names, "UNREAD", &PySet_Type);
    core.user_line = lookup(names, "user_line", NULL);
    core.writes = lookup(names, "WRITES", &PyDict_Type);
    wrote = lookup(names, "note_write", NULL);
    record = lookup(names, "new_write_record", NULL);
    lock = lookup(names, "WRITING", NULL);
    lender = lookup(names, "Lender", &PyType_Type);
    core.before_write = lookup(names, "BEFORE_WRITE", &PyList_Type);
    core.no_grad = PyUnicode_InternFromString("no_grad");
    core.active_modes = lookup(names, "ACTIVE_MODES", &PyList_Type);
    core.user_files = lookup(names, "USER_FILES", &PySet_Type);
    core.note_frame = lookup(names, "note_frame", NULL);
    core.counter = lookup(names, "counter", NULL);
    core.no_params = lookup(names, "NO_PARAMS", &PyDict_Type);
    python_register_if_view = lookup(names, "register_if_view", NULL);
    unbroadcast = lookup(names, "unbroadcast", NULL);
    operations = lookup(names, "operations", &PyDict_Type);
    plus = lookup(names, "add", NULL);
    make_op = lookup(names, "make_op", NULL);
    trace_value = lookup(names, "trace_value", NULL);
    trace_rule = lookup(names, "trace_rule", NULL);
    trace_tangent = lookup(names, "trace_tangent", NULL);
    protected_function = lookup(names, "saveable_array", NULL);
    core.getframe = lookup(names, "_getframe", NULL);
    core.empty_tuple = PyTuple_New(0);
    core.dtypes[0] = PyArray_DescrFromType(NPY_FLOAT);
    core.dtypes[1] = PyArray_DescrFromType(NPY_DOUBLE);
    core.dtypes[2] = PyArray_DescrFromType(NPY_BOOL);
    if (PyErr_Occurred() || Py_TYPE(core.counter)->tp_iternext == NULL || connect_values(plus) < 0 || connect_writes(wrote, record, lock, lender) < 0 || connect_ops(make_op, trace_value, trace_rule, trace_tangent, unbroadcast, operations, protected_function) < 0) return NULL;
    Py_RETURN_NONE;
}

/* Call the self-test, which enables or refuses operations in C, once, and only while all threads are in the default mode. */
int run_self_test(void) {
    PyObject *test = core.self_test, *result;
    if (test == NULL || PyList_GET_SIZE(core.active_modes) != 0) return 0;
    core.self_test = NULL;
    result = PyObject_CallNoArgs(test);
    Py_DECREF(test);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* test_first(function): call the function before the first operation */
static PyObject *test_first(PyObject *module, PyObject *function) {
    (void)module;
    Py_XSETREF(core.self_test, Py_NewRef(function));
    Py_RETURN_NONE;
}

/* switch_on(enabled): run operations in C, or all in Python; return the previous setting */
static PyObject *switch_on(PyObject *module, PyObject *whether) {
    int before, on = PyObject_IsTrue(whether);
    (void)module;
    if (on < 0 || run_self_test() < 0) return NULL;
    before = core.enabled;
    if (on && core.empty_tuple == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "connect() was not called");
        return NULL;
    }
    core.enabled = on;
    return PyBool_FromLong(before);
}

PyMethodDef tape_functions[] = {
    {"connect", connect, METH_O, "connect(names): set the classes and functions that operations in C use"},
    {"switch_on", switch_on, METH_O, "switch_on(enabled): run operations in C, or all in Python; return the previous setting"},
    {"test_first", test_first, METH_O, "test_first(function): call the function before the first operation"},
    {"register_user_object", register_user_object, METH_NOARGS, "register_user_object(): tell the garbage collector hook that user objects can be reached from nodes"},
    {"new_node", (PyCFunction)(void (*)(void))python_new_node, METH_FASTCALL | METH_KEYWORDS, "tape.node.new_node"},
    {NULL, NULL, 0, NULL},
};
