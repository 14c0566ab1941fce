/* Tracing of Python instructions for `compile` with sys.settrace, on Python 3.11: compiling/guards/frames.py uses these functions.

   enable_untraced and mark_untraced run library code without the trace function, whose calls for each instruction are slow. trace_frames
   filters instruction events in C. Later versions of Python have sys.monitoring, which can disable events itself. */

#define NO_IMPORT_ARRAY
#include "runner.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)

/* index of the code object in an interpreter frame, in words */
#define CODE_WORD 4

static Py_ssize_t code_extra_index = -1;    /* index of the extra field of code objects that marks untraced code */
static PyThreadState *traced_thread = NULL; /* the thread with untraced code enabled */
static int enable_count = 0;                /* nesting depth of enable_untraced(True) */
static int is_suspended = 0;                /* whether the thread runs untraced code now */
static _PyFrameEvalFunction original_evaluate = NULL;

static int is_untraced(struct _PyInterpreterFrame *frame) {
    void *value = NULL;
    return _PyCode_GetExtra(((PyObject **)frame)[CODE_WORD], code_extra_index, &value) == 0 && value != NULL;
}

static PyObject *evaluate_frame(PyThreadState *thread, struct _PyInterpreterFrame *frame, int throwing) {
    PyObject *result;
    int untraced;
    if (thread != traced_thread || (untraced = is_untraced(frame)) == is_suspended) return original_evaluate(thread, frame, throwing);
    is_suspended = untraced;
    if (untraced) PyThreadState_EnterTracing(thread);
    else PyThreadState_LeaveTracing(thread);
    result = original_evaluate(thread, frame, throwing);
    if (untraced) PyThreadState_LeaveTracing(thread);
    else PyThreadState_EnterTracing(thread);
    is_suspended = !untraced;
    return result;
}

/* Return whether the word of the running frame that is_untraced reads is its code object, as in all known releases of 3.11. */
static int finds_code(PyThreadState *thread) {
    PyFrameObject *frame = PyThreadState_GetFrame(thread); /* a new reference */
    PyCodeObject *code = frame == NULL ? NULL : PyFrame_GetCode(frame);
    int found = code != NULL && thread->cframe != NULL && thread->cframe->current_frame != NULL && ((PyObject **)thread->cframe->current_frame)[CODE_WORD] == (PyObject *)code;
    Py_XDECREF(code);
    Py_XDECREF(frame);
    return found;
}

/* enable_untraced(enable): start or stop running marked code of this thread without tracing. Return whether that is possible here. */
PyObject *enable_untraced(PyObject *module, PyObject *flag) {
    PyThreadState *thread = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(thread);
    int enable = PyObject_IsTrue(flag);
    (void)module;
    if (enable < 0) return NULL;
    if (enable_count == 0 && !finds_code(thread)) Py_RETURN_FALSE;
    if (code_extra_index < 0) code_extra_index = _PyEval_RequestCodeExtraIndex(NULL);
    if (code_extra_index < 0 || (traced_thread != NULL && traced_thread != thread)) Py_RETURN_FALSE;
    if (enable && enable_count++ == 0) {
        original_evaluate = _PyInterpreterState_GetEvalFrameFunc(interpreter);
        traced_thread = thread;
        is_suspended = 0;
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_frame);
    } else if (!enable && enable_count > 0 && --enable_count == 0) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, original_evaluate);
        traced_thread = NULL;
    }
    Py_RETURN_TRUE;
}

PyObject *mark_untraced(PyObject *module, PyObject *code) {
    (void)module;
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "mark_untraced takes a code object");
        return NULL;
    }
    if (code_extra_index >= 0 && _PyCode_SetExtra(code, code_extra_index, &code_extra_index) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- instruction events

   The f_trace of a traced frame is a tuple (table, pending, callback, heights, counts, cached):
     table     a bytearray with an enum below for each instruction: whether it needs a callback
     pending   a bytearray of one byte; if it is set, the next instruction gets a callback in any case
     callback  gets the offset of an instruction, or -1 when the frame ends. It returns the new value of `pending`. None: see open_frame
     heights   an array of int16: the offset of the stack in the frame, then the height of the stack before each instruction
     counts    a byte for each instruction: the number of its operands, or the index of the cell that it reads
     cached    a list: for each instruction None or a tuple of entries, for operands that need no callback again. The functions below
               that have `entry` in their name read them; instructions.py makes them */

enum { NOTHING, ALWAYS, UNLESS_PLAIN, UNLESS_PLAIN_SUBSCRIPT, UNLESS_CACHED_CALL, UNLESS_CACHED_ATTRIBUTE, IF_RECEIVED, UNLESS_CACHED_CELL, UNLESS_OWN, UNLESS_OWN_ITEM, UNLESS_NONE, UNLESS_MEMBER, UNLESS_CACHED_UNPACKED };
enum { TABLE, PENDING, CALLBACK, HEIGHTS, COUNTS, CACHED, TRACE_FIELDS };

/* words of an interpreter frame: the function that it runs, and its first local. frames.py lists and tests them. */
enum { FUNCTION_WORD = 0, FIRST_LOCAL = 9, MOST_DEEP = 16 };

/* the beginning of a frame object, as in all releases of 3.11 */
typedef struct {
    PyObject_HEAD
    PyFrameObject *back;
    PyObject **words; /* the interpreter frame */
    PyObject *trace;
    int line;
    char trace_lines, trace_opcodes;
} FrameFields;

static PyObject *ignored_name = NULL, *failed_name = NULL;
static PyObject *plain_types = NULL, *python_floats = NULL, *known_code = NULL, *open_frame = NULL, *watch = NULL, *receivers = NULL, *written = NULL, *own_methods = NULL; /* of the running trace */
static int depth = 0;                                                                                               /* the number of running frames that began here */

static PyObject **words_of(PyFrameObject *frame) { return ((FrameFields *)frame)->words; }

/* the addresses of plain_types, by the hash below; the classes are kept alive by plain_types */
enum { PLAIN_SLOTS = 128 };
static PyTypeObject *plain_table[PLAIN_SLOTS];

static size_t slot_of(PyTypeObject *type) { return ((size_t)type >> 4) % PLAIN_SLOTS; }

static int is_plain(PyObject *x) {
    size_t slot;
    if (x == NULL) return 0;
    for (slot = slot_of(Py_TYPE(x)); plain_table[slot] != NULL; slot = (slot + 1) % PLAIN_SLOTS) {
        if (plain_table[slot] == Py_TYPE(x)) return 1;
    }
    return 0;
}

static int set_plain_types(PyObject *types) {
    PyObject *type, *iterator = PySet_GET_SIZE(types) < PLAIN_SLOTS / 2 ? PyObject_GetIter(types) : NULL;
    if (iterator == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "too many plain types");
        return -1;
    }
    memset(plain_table, 0, sizeof(plain_table));
    while ((type = PyIter_Next(iterator)) != NULL) {
        size_t slot = slot_of((PyTypeObject *)type);
        while (plain_table[slot] != NULL) slot = (slot + 1) % PLAIN_SLOTS;
        plain_table[slot] = (PyTypeObject *)type;
        Py_DECREF(type); /* types has another reference */
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : 0;
}

static int is_plain_slice(PyObject *x) {
    PySliceObject *slice = (PySliceObject *)x;
    return PySlice_Check(x) && is_plain(slice->start) && is_plain(slice->stop) && is_plain(slice->step);
}

/* Whether an index is a slice, or a tuple of numbers and slices. */
static int is_plain_index(PyObject *x) {
    Py_ssize_t i;
    if (x == NULL || !PyTuple_CheckExact(x)) return x != NULL && is_plain_slice(x);
    for (i = 0; i < PyTuple_GET_SIZE(x); i++) {
        if (!is_plain(PyTuple_GET_ITEM(x, i)) && !is_plain_slice(PyTuple_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* Return the dictionary behind a view of it; other objects unchanged. */
static PyObject *shown_by(PyObject *x) {
    int is_view = Py_IS_TYPE(x, &PyDictValues_Type) || Py_IS_TYPE(x, &PyDictItems_Type) || Py_IS_TYPE(x, &PyDictKeys_Type);
    return is_view ? (PyObject *)((_PyDictViewObject *)x)->dv_dict : x;
}

/* Whether only locals and operands of a running function refer to a list or dictionary. Then the function got it during the trace, and no other
   code can see its content: reads need no guards, and changes need not be undone. A generator may have begun before the trace. */
static int is_own(PyObject **words, PyObject **top, PyObject *x) {
    Py_ssize_t references;
    PyObject **word, *shown;
    if (x == NULL) return 0;
    shown = shown_by(x);
    if (!(PyList_CheckExact(shown) || PyDict_CheckExact(shown)) || (shown != x && Py_REFCNT(x) != 1)) return 0;
    if (((PyCodeObject *)words[CODE_WORD])->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) return 0;
    references = shown != x; /* the view on the stack has one */
    for (word = words + FIRST_LOCAL; word < top; word++) references += *word == shown;
    return Py_REFCNT(shown) == references;
}

/* Whether an argument is a list that no other code can change, or a tuple, of plain elements. */
static int is_plain_sequence(PyObject **words, PyObject **top, PyObject *x) {
    Py_ssize_t i;
    if (x == NULL || !(PyTuple_CheckExact(x) || (PyList_CheckExact(x) && (Py_REFCNT(x) == 1 || is_own(words, top, x))))) return 0;
    for (i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        if (!is_plain(PySequence_Fast_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* Whether the class of an object cannot change and is not defined in Python, and the object is no class. */
static int is_of_fixed_class(PyObject *x) { return x != NULL && !(Py_TYPE(x)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyType_Check(x); }

/* ---- cached entries */

static int has_entry(PyObject *entries, PyObject *x) {
    Py_ssize_t i;
    for (i = 0; entries != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        if (PyTuple_GET_ITEM(entries, i) == x) return 1;
    }
    return 0;
}

/* An array that was operand of a recorded call has an entry (array,): its numbers do not matter where the other operand is a traced value. */
static int has_mixed_entry(PyObject *entries, PyObject *x) {
    Py_ssize_t i;
    for (i = 0; entries != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i);
        if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 1 && PyTuple_GET_ITEM(entry, 0) == x) return 1;
    }
    return 0;
}

/* An element of a dictionary has an entry (dictionary, key). */
static int has_element_entry(PyObject *entries, PyObject *x, PyObject *key) {
    Py_ssize_t i;
    for (i = 0; entries != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i);
        if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2 && PyTuple_GET_ITEM(entry, 0) == x && PyTuple_GET_ITEM(entry, 1) == key) return 1;
    }
    return 0;
}

static int is_in_instance(PyObject *x, PyObject *name, PyObject *value) {
    PyObject **inside = _PyObject_GetDictPtr(x), *found;
    if (PyErr_Occurred()) PyErr_Clear();
    if (inside == NULL || *inside == NULL) return value == NULL;
    found = PyDict_GetItemWithError(*inside, name);
    if (PyErr_Occurred()) PyErr_Clear();
    return found == value;
}

/* An attribute has an entry (owner, type, version, name[, value]): the owner or None for all objects of the type; the version tag of the type or
   None; the name, if the instance dictionary must still have this value, or still have none, else None. */
static int has_attribute_entry(PyObject *entries, PyObject *x) {
    Py_ssize_t i;
    PyTypeObject *type = Py_TYPE(x);
    for (i = 0; entries != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i), *owner, *version, *name;
        if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) < 4 || PyTuple_GET_ITEM(entry, 1) != (PyObject *)type) continue;
        owner = PyTuple_GET_ITEM(entry, 0);
        if (owner == Py_None ? !is_of_fixed_class(x) && PySet_GET_SIZE(python_floats) > 0 : owner != x) continue;
        version = PyTuple_GET_ITEM(entry, 2);
        if (version != Py_None && (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) || !PyLong_CheckExact(version) || PyLong_AsUnsignedLong(version) != type->tp_version_tag)) continue;
        name = PyTuple_GET_ITEM(entry, 3);
        if (name == Py_None || is_in_instance(x, name, PyTuple_GET_SIZE(entry) > 4 ? PyTuple_GET_ITEM(entry, 4) : NULL)) return 1;
    }
    return 0;
}

/* Whether the arguments of a method of a list or dictionary run no code: a key, then any objects without Python code. */
static int are_simple_arguments(PyObject *container, PyObject **arguments, PyObject **top) {
    PyObject **x;
    for (x = arguments; x < top; x++) {
        if (!is_plain(*x) && (!is_of_fixed_class(*x) || (PyDict_CheckExact(container) && x == arguments))) return 0;
    }
    return 1;
}

/* A call has an entry (function,) for operands of plain types, (code, globals) of a Python function, (method, dictionary[, key]), or the entry of
   the attribute __call__ in a tuple. Bound methods are called as functions. arguments: NULL if they are unpacked. */
static int has_call_entry(PyObject *entries, PyObject *function, PyObject **words, PyObject **arguments, PyObject **top) {
    Py_ssize_t i;
    PyObject *bound = NULL;
    if (function != NULL && Py_IS_TYPE(function, &PyMethod_Type)) {
        bound = PyMethod_GET_SELF(function);
        function = PyMethod_GET_FUNCTION(function);
    }
    for (i = 0; entries != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i), *first, **argument;
        Py_ssize_t size = PyTuple_CheckExact(entry) ? PyTuple_GET_SIZE(entry) : 0;
        if (size == 0) continue;
        first = PyTuple_GET_ITEM(entry, 0);
        if (PyCode_Check(first)) {
            if (size == 2 && PyFunction_Check(function) && PyFunction_GET_CODE(function) == first && PyFunction_GET_GLOBALS(function) == PyTuple_GET_ITEM(entry, 1)) return 1;
        } else if (arguments == NULL || (bound != NULL && !is_plain(bound)) || !(first == function || (size == 1 && PyTuple_CheckExact(first) && has_attribute_entry(entry, function)))) {
            continue;
        } else if (size == 1) {
            for (argument = arguments; argument < top && (is_plain(*argument) || is_plain_sequence(words, top, *argument)); argument++);
            if (argument == top) return 1;
        } else if (top - arguments >= size - 1 && arguments[0] == PyTuple_GET_ITEM(entry, 1)) {
            if (size == 2 ? top - arguments == 1 : arguments[1] == PyTuple_GET_ITEM(entry, 2) && are_simple_arguments(arguments[0], arguments + 1, top)) return 1;
        }
    }
    return 0;
}

/* Whether indexing an array that has an entry needs no guard: its numbers have one, or the index gives a view for each layout of the array. */
static int has_index_entry(PyObject *entries, PyObject *x, PyObject *key) {
    Py_ssize_t i, integers = 0, count = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    if (!PyArray_CheckExact(x)) return 0;
    if (has_entry(entries, x)) return PyDict_GET_SIZE(written) == 0 && (is_plain(key) || is_plain_index(key));
    if (!has_mixed_entry(entries, x)) return 0;
    for (i = 0; i < count; i++) {
        PyObject *part = PyTuple_CheckExact(key) ? PyTuple_GET_ITEM(key, i) : key;
        if (PyLong_CheckExact(part)) integers++;
        else if (part != Py_None && part != Py_Ellipsis && !is_plain_slice(part)) return 0;
    }
    return integers < PyArray_NDIM((PyArrayObject *)x);
}

/* Whether operands have plain types, or are arrays with an entry. */
static int are_plain_operands(PyObject *entries, PyObject **first, PyObject **top) {
    PyObject **x;
    int traced = 0, mixed = 0;
    for (x = first; x < top; x++) {
        if (is_plain(*x)) traced |= !is_of_fixed_class(*x); /* the plain types that are defined in Python are those of traced values */
        else if (entries == NULL || *x == NULL || !PyArray_CheckExact(*x) || PyDict_GET_SIZE(written) > 0) return 0;
        else if (!has_entry(entries, *x)) {
            if (!has_mixed_entry(entries, *x)) return 0;
            mixed = 1;
        }
    }
    return traced || !mixed;
}

/* Whether the callback of an instruction would have no effect. */
static int needs_no_callback(PyFrameObject *frame, PyObject *f_trace, int index, int kind) {
    PyObject *heights = PyTuple_GET_ITEM(f_trace, HEIGHTS), *counts = PyTuple_GET_ITEM(f_trace, COUNTS), *cached = PyTuple_GET_ITEM(f_trace, CACHED), **words, **top, *entries;
    const short *height;
    int count, receiver;
    if (kind == IF_RECEIVED) return PyDict_GET_SIZE(receivers) == 0;
    if (kind == ALWAYS || !PyBytes_CheckExact(heights) || !PyBytes_CheckExact(counts) || !PyList_CheckExact(cached) || PyBytes_GET_SIZE(counts) <= index || PyBytes_GET_SIZE(heights) < 2 * (index + 2) || PyList_GET_SIZE(cached) <= index) return 0;
    height = (const short *)PyBytes_AS_STRING(heights);
    words = words_of(frame);
    top = words + FIRST_LOCAL + height[0] + height[1 + index]; /* the operands are top[-1], top[-2], ... */
    count = (unsigned char)PyBytes_AS_STRING(counts)[index];
    entries = PyList_GET_ITEM(cached, index);
    if (!PyTuple_CheckExact(entries)) entries = NULL;
    switch (kind) {
    case UNLESS_PLAIN:
        return are_plain_operands(entries, top - count, top) && !PyUnicode_Check(top[-count]); /* a format string runs code of its operands */
    case UNLESS_PLAIN_SUBSCRIPT:
        if (top[-2] == NULL || top[-1] == NULL) return 0;
        if (is_plain(top[-2])) return PySet_GET_SIZE(python_floats) == 0 && (is_plain(top[-1]) || is_plain_index(top[-1]));
        if (has_element_entry(entries, top[-2], top[-1]) || has_index_entry(entries, top[-2], top[-1])) return 1;
        return is_plain(top[-1]) && (PyTuple_CheckExact(top[-2]) || is_own(words, top, top[-2]) || (PyList_CheckExact(top[-2]) && has_entry(entries, top[-2])));
    case UNLESS_CACHED_CALL:
        receiver = top[-count - 2] != NULL;
        if (top[-count - 1 - receiver] == NULL) return 0;
        if (receiver && (PyList_CheckExact(top[-count - 1]) || PyDict_CheckExact(top[-count - 1])) && PySet_Contains(own_methods, top[-count - 2]) == 1 &&
            are_simple_arguments(top[-count - 1], top - count, top) && is_own(words, top, top[-count - 1])) return 1;
        return has_call_entry(entries, top[-count - 1 - receiver], words, top - count - receiver, top);
    case UNLESS_CACHED_ATTRIBUTE:
        return top[-1] != NULL && has_attribute_entry(entries, top[-1]);
    case UNLESS_CACHED_CELL:
        return has_entry(entries, words[FIRST_LOCAL + count]);
    case UNLESS_OWN:
        return top[-1] != NULL && (is_plain(top[-1]) || PyTuple_CheckExact(top[-1]) || has_entry(entries, shown_by(top[-1])) || is_own(words, top, top[-1]));
    case UNLESS_OWN_ITEM:
        return is_plain(top[-1]) && is_own(words, top, top[-2]);
    case UNLESS_NONE:
        return top[-1] == top[-2] || top[-1] == Py_None || top[-2] == Py_None;
    case UNLESS_MEMBER:
        if (top[-1] == NULL || top[-2] == NULL) return 0;
        if (is_plain(top[-1]) && is_plain(top[-2])) return 1;
        return PyUnicode_CheckExact(top[-2]) && PyDict_CheckExact(top[-1]) && (has_element_entry(entries, top[-1], top[-2]) || is_own(words, top, top[-1]));
    case UNLESS_CACHED_UNPACKED:
        /* count: whether there are keywords */
        if (top[-1 - count] == NULL || !PyTuple_CheckExact(top[-1 - count]) || top[-2 - count] == NULL) return 0;
        if (count && !(PyDict_CheckExact(top[-1]) && is_own(words, top, top[-1]))) return 0;
        return has_call_entry(entries, top[-2 - count], words, NULL, NULL);
    default:
        return 0;
    }
}

static void set_trace(PyFrameObject *frame, PyObject *f_trace) {
    FrameFields *fields = (FrameFields *)frame;
    fields->trace_lines = 0;
    fields->trace_opcodes = 1;
    Py_XSETREF(fields->trace, Py_NewRef(f_trace));
}

static int is_traced_here(PyObject *f_trace) { return f_trace != NULL && PyTuple_CheckExact(f_trace) && PyTuple_GET_SIZE(f_trace) == TRACE_FIELDS; }

/* Whether the Python caller of a frame is traced here. */
static int has_traced_caller(PyFrameObject *frame) {
    PyFrameObject *caller = PyFrame_GetBack(frame); /* a new reference */
    int traced = caller != NULL && is_traced_here(((FrameFields *)caller)->trace);
    Py_XDECREF(caller);
    return traced;
}

static int is_known_argument(PyObject *known, PyObject *argument) {
    Py_ssize_t i;
    if (known == Py_None) return 1;
    if (argument == NULL) return 0;
    if (!PyList_CheckExact(known)) return known == (PyObject *)Py_TYPE(argument);
    for (i = 0; i + 1 < PyList_GET_SIZE(known); i += 2) {
        if (PyList_GET_ITEM(known, i) == argument && PyList_GET_ITEM(known, i + 1) == (PyObject *)Py_TYPE(argument)) return 1;
    }
    return 0;
}

/* Begin a frame of known code, whose beginning needs no callback: 1 done, 0 call back, -1 error. known_code maps a code object to
   (function, first argument, table, heights, counts, cached, by_traced). The first argument is a type, a list of objects and their types, or None.
   For a comprehension, each run of which has a new function, the first two are (None, globals). by_traced: the caller must be traced here. */
static int begin_known(PyFrameObject *frame) {
    PyObject *code = (PyObject *)PyFrame_GetCode(frame), *entry = PyDict_GetItemWithError(known_code, code), **words = words_of(frame), *pending, *f_trace, *ignored;
    int done = 0;
    Py_DECREF(code);
    if (entry == NULL || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 7 || depth >= MOST_DEEP) return PyErr_Occurred() ? -1 : 0;
    if (PyTuple_GET_ITEM(entry, 0) == Py_None) {
        if (words[FUNCTION_WORD] == NULL || !PyFunction_Check(words[FUNCTION_WORD]) || PyFunction_GET_GLOBALS(words[FUNCTION_WORD]) != PyTuple_GET_ITEM(entry, 1)) return 0;
    } else if (PyTuple_GET_ITEM(entry, 0) != words[FUNCTION_WORD] || !is_known_argument(PyTuple_GET_ITEM(entry, 1), words[FIRST_LOCAL])) {
        return 0;
    }
    if (PyTuple_GET_ITEM(entry, 6) == Py_True && !has_traced_caller(frame)) return 0;
    ignored = PyObject_GetAttr(watch, ignored_name);
    if (ignored != Py_None) {
        Py_XDECREF(ignored);
        return ignored == NULL ? -1 : 0;
    }
    Py_DECREF(ignored);
    Py_INCREF(entry);
    pending = PyByteArray_FromStringAndSize("\0", 1);
    f_trace = pending == NULL ? NULL : PyTuple_Pack(TRACE_FIELDS, PyTuple_GET_ITEM(entry, 2), pending, Py_None, PyTuple_GET_ITEM(entry, 3), PyTuple_GET_ITEM(entry, 4), PyTuple_GET_ITEM(entry, 5));
    done = f_trace == NULL ? -1 : 1;
    if (done > 0) {
        set_trace(frame, f_trace);
        depth++;
    }
    Py_XDECREF(f_trace);
    Py_XDECREF(pending);
    Py_DECREF(entry);
    return done;
}

/* Stop tracing after an error of the watch itself, such as a RecursionError. The function may handle it and run on: the watch is marked. */
static int stop_watching(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (watch == NULL || PyObject_SetAttr(watch, failed_name, Py_True) < 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    PyEval_SetTrace(NULL, NULL);
    return -1;
}

static int on_trace_event(PyObject *callback, PyFrameObject *frame, int event, PyObject *arg) {
    PyObject *f_trace, *result = NULL, *offset, *look, *pending;
    int lasti, index, kind;
    (void)arg;
    if (event == PyTrace_CALL) {
        int known = begin_known(frame);
        if (known != 0) return known < 0 ? stop_watching() : 0;
        Py_INCREF(callback); /* the call may replace the trace function */
        result = PyObject_CallOneArg(callback, (PyObject *)frame);
        Py_DECREF(callback);
        Py_XDECREF(result);
        return result == NULL ? stop_watching() : 0;
    }
    if (event != PyTrace_OPCODE && event != PyTrace_RETURN) return 0;
    f_trace = ((FrameFields *)frame)->trace;
    if (!is_traced_here(f_trace) || !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, TABLE)) ||
        !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, PENDING)) || PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, PENDING)) != 1) return 0;
    lasti = event == PyTrace_RETURN ? -1 : PyFrame_GetLasti(frame);
    index = lasti / 2;
    pending = PyTuple_GET_ITEM(f_trace, PENDING);
    look = PyTuple_GET_ITEM(f_trace, CALLBACK);
    if (lasti < 0 && look == Py_None) depth--;
    if (lasti < 0 ? look == Py_None : !PyByteArray_AS_STRING(pending)[0] && index < PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, TABLE)) && ((kind = PyByteArray_AS_STRING(PyTuple_GET_ITEM(f_trace, TABLE))[index]) == NOTHING || needs_no_callback(frame, f_trace, index, kind))) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(f_trace);
    if (look == Py_None) {
        depth--;
        look = PyObject_CallFunctionObjArgs(open_frame, (PyObject *)frame, f_trace, NULL);
        if (look == NULL) {
            Py_DECREF(f_trace);
            return stop_watching();
        }
    } else {
        Py_INCREF(look);
    }
    offset = PyLong_FromLong(lasti);
    if (offset != NULL) result = PyObject_CallOneArg(look, offset);
    Py_XDECREF(offset);
    Py_DECREF(look);
    if (result != NULL && PyByteArray_GET_SIZE(pending) == 1) PyByteArray_AS_STRING(pending)[0] = result == Py_True;
    Py_XDECREF(result);
    Py_DECREF(f_trace);
    return result == NULL ? -1 : 0; /* do not stop tracing: instructions that run while the frame ends are traced as well */
}

/* trace_frames(callback, open_frame, watch, plain_types, python_floats, receivers, written, own_methods, known_code): call a function with each frame of this thread that begins,
   until sys.settrace(None). Return whether that is possible.
   open_frame(frame, f_trace): returns the callback of a frame that began without one, and sets the frame's f_trace
   plain_types: types of operands whose use needs no callback; python_floats: the numbers of the traced values that are Python floats
   receivers: is empty if no C code receives the values that functions return; written: is empty if no array was written
   own_methods: methods of lists and dictionaries that read or change only these, if the arguments are simple */
PyObject *trace_frames(PyObject *module, PyObject *args) {
    PyObject *callback, *opener, *the_watch, *types, *floats, *receiving, *writing, *methods, *known;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!O!O!O!O!O!", &callback, &opener, &the_watch, &PyFrozenSet_Type, &types, &PySet_Type, &floats, &PyDict_Type, &receiving, &PyDict_Type, &writing, &PyFrozenSet_Type, &methods, &PyDict_Type, &known)) return NULL;
    if (failed_name == NULL) {
        ignored_name = PyUnicode_InternFromString("ignored_frame");
        failed_name = PyUnicode_InternFromString("failed");
        if (failed_name == NULL || ignored_name == NULL) return NULL;
    }
    if (set_plain_types(types) < 0) return NULL;
    Py_XSETREF(open_frame, Py_NewRef(opener));
    Py_XSETREF(watch, Py_NewRef(the_watch));
    Py_XSETREF(plain_types, Py_NewRef(types));
    Py_XSETREF(python_floats, Py_NewRef(floats));
    Py_XSETREF(receivers, Py_NewRef(receiving));
    Py_XSETREF(written, Py_NewRef(writing));
    Py_XSETREF(own_methods, Py_NewRef(methods));
    Py_XSETREF(known_code, Py_NewRef(known));
    depth = 0;
    PyEval_SetTrace(on_trace_event, callback);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

/* drop_trace_references(): drop the references of trace_frames */
PyObject *drop_trace_references(PyObject *module, PyObject *arg) {
    (void)module;
    (void)arg;
    Py_CLEAR(open_frame);
    Py_CLEAR(watch);
    Py_CLEAR(plain_types);
    memset(plain_table, 0, sizeof(plain_table));
    Py_CLEAR(python_floats);
    Py_CLEAR(receivers);
    Py_CLEAR(written);
    Py_CLEAR(own_methods);
    Py_CLEAR(known_code);
    Py_RETURN_NONE;
}

#else

PyObject *trace_frames(PyObject *module, PyObject *args) {
    (void)module;
    (void)args;
    Py_RETURN_FALSE;
}

PyObject *drop_trace_references(PyObject *module, PyObject *arg) {
    (void)module;
    (void)arg;
    Py_RETURN_NONE;
}

PyObject *enable_untraced(PyObject *module, PyObject *flag) {
    (void)module;
    (void)flag;
    Py_RETURN_FALSE;
}

PyObject *mark_untraced(PyObject *module, PyObject *code) {
    (void)module;
    (void)code;
    Py_RETURN_NONE;
}

#endif
