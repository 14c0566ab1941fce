/* Tracing of Python instructions for `compile` with sys.settrace, on Python 3.11: compiling/guards/frames.py uses these functions.

   enable_untraced and mark_untraced run library code without the trace function, whose calls for each instruction are slow. trace_frames
   filters instruction events in C. Later versions of Python have sys.monitoring, which can disable events itself. */

#include "loops.h"

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
     cached    a list: for each instruction an object whose use needs no callback again */

enum { NOTHING, ALWAYS, UNLESS_PLAIN, UNLESS_PLAIN_SUBSCRIPT, UNLESS_CACHED_CALL, UNLESS_CACHED_OBJECT, IF_RECEIVED, UNLESS_CACHED_CELL };
enum { TABLE, PENDING, CALLBACK, HEIGHTS, COUNTS, CACHED, TRACE_FIELDS };

/* words of an interpreter frame: the function that it runs, and its first local. frames.py lists and tests them. */
enum { FUNCTION_WORD = 0, FIRST_LOCAL = 9, MOST_DEEP = 16 };

static PyObject *f_trace_name = NULL, *f_trace_lines_name = NULL, *f_trace_opcodes_name = NULL, *ignored_name = NULL, *failed_name = NULL;
static PyObject *plain_types = NULL, *python_floats = NULL, *known_code = NULL, *open_frame = NULL, *watch = NULL, *receivers = NULL; /* of the running trace */
static int depth = 0;                                                                                               /* the number of running frames that began here */

static PyObject **words_of(PyFrameObject *frame) { return *(PyObject ***)((char *)frame + sizeof(PyObject) + sizeof(void *)); }

static int is_plain(PyObject *x) { return x != NULL && PySet_Contains(plain_types, (PyObject *)Py_TYPE(x)) == 1; }

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

/* Whether an argument is a list that only the evaluation stack refers to, so that no other code can change it, or a tuple, of plain elements. */
static int is_plain_sequence(PyObject *x) {
    Py_ssize_t i;
    if (x == NULL || !(PyTuple_CheckExact(x) || (PyList_CheckExact(x) && Py_REFCNT(x) == 1))) return 0;
    for (i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        if (!is_plain(PySequence_Fast_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* Whether the callback of an instruction would have no effect. */
static int needs_no_callback(PyFrameObject *frame, PyObject *f_trace, int index, int kind) {
    PyObject *heights = PyTuple_GET_ITEM(f_trace, HEIGHTS), *counts = PyTuple_GET_ITEM(f_trace, COUNTS), *cached = PyTuple_GET_ITEM(f_trace, CACHED), **top, *function, *known;
    const short *height;
    int i, count, receiver = 0;
    if (kind == IF_RECEIVED) return PyDict_GET_SIZE(receivers) == 0;
    if (kind == ALWAYS || !PyBytes_CheckExact(heights) || !PyBytes_CheckExact(counts) || !PyList_CheckExact(cached) || PyBytes_GET_SIZE(counts) <= index || PyBytes_GET_SIZE(heights) < 2 * (index + 2) || PyList_GET_SIZE(cached) <= index) return 0;
    height = (const short *)PyBytes_AS_STRING(heights);
    top = words_of(frame) + FIRST_LOCAL + height[0] + height[1 + index]; /* the operands are top[-1], top[-2], ... */
    count = (unsigned char)PyBytes_AS_STRING(counts)[index];
    if (kind == UNLESS_CACHED_CELL) return words_of(frame)[FIRST_LOCAL + count] == PyList_GET_ITEM(cached, index);
    if (kind == UNLESS_CACHED_OBJECT) return top[-1] == PyList_GET_ITEM(cached, index);
    if (kind == UNLESS_PLAIN_SUBSCRIPT && PySet_GET_SIZE(python_floats) > 0) return 0;
    if (kind == UNLESS_CACHED_CALL) {
        receiver = top[-count - 2] != NULL;
        function = top[-count - 1 - receiver];
        known = PyList_GET_ITEM(cached, index);
        if (known == function) return 1;
        if (!PyTuple_CheckExact(known) || PyTuple_GET_SIZE(known) != 1 || PyTuple_GET_ITEM(known, 0) != function) return 0;
    }
    for (i = 1; i <= count + receiver; i++) {
        if (!is_plain(top[-i]) && !(kind == UNLESS_PLAIN_SUBSCRIPT && i == 1 && is_plain_index(top[-1])) && !(kind == UNLESS_CACHED_CALL && is_plain_sequence(top[-i]))) return 0;
    }
    return kind == UNLESS_CACHED_CALL || !PyUnicode_Check(top[-count]); /* a format string runs code of its operands */
}

static int set_trace(PyObject *frame, PyObject *f_trace) {
    return PyObject_SetAttr(frame, f_trace_lines_name, Py_False) < 0 || PyObject_SetAttr(frame, f_trace_opcodes_name, Py_True) < 0 || PyObject_SetAttr(frame, f_trace_name, f_trace) < 0 ? -1 : 0;
}

/* Begin a frame of known code, whose beginning needs no callback: 1 done, 0 call back, -1 error. known_code maps a code object to
   (function, type of the first argument or None, table, heights, counts, cached), or has (None, globals) first: each run has a new function. */
static int begin_known(PyFrameObject *frame) {
    PyObject *code = (PyObject *)PyFrame_GetCode(frame), *entry = PyDict_GetItemWithError(known_code, code), **words = words_of(frame), *pending, *f_trace, *ignored;
    int done = 0;
    Py_DECREF(code);
    if (entry == NULL || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 6 || depth >= MOST_DEEP) return PyErr_Occurred() ? -1 : 0;
    if (PyTuple_GET_ITEM(entry, 0) == Py_None) {
        if (words[FUNCTION_WORD] == NULL || !PyFunction_Check(words[FUNCTION_WORD]) || PyFunction_GET_GLOBALS(words[FUNCTION_WORD]) != PyTuple_GET_ITEM(entry, 1)) return 0;
    } else if (PyTuple_GET_ITEM(entry, 0) != words[FUNCTION_WORD]) {
        return 0;
    } else if (PyTuple_GET_ITEM(entry, 1) != Py_None && (words[FIRST_LOCAL] == NULL || PyTuple_GET_ITEM(entry, 1) != (PyObject *)Py_TYPE(words[FIRST_LOCAL]))) return 0;
    ignored = PyObject_GetAttr(watch, ignored_name);
    if (ignored != Py_None) {
        Py_XDECREF(ignored);
        return ignored == NULL ? -1 : 0;
    }
    Py_DECREF(ignored);
    Py_INCREF(entry);
    pending = PyByteArray_FromStringAndSize("\0", 1);
    f_trace = pending == NULL ? NULL : PyTuple_Pack(TRACE_FIELDS, PyTuple_GET_ITEM(entry, 2), pending, Py_None, PyTuple_GET_ITEM(entry, 3), PyTuple_GET_ITEM(entry, 4), PyTuple_GET_ITEM(entry, 5));
    done = f_trace == NULL || set_trace((PyObject *)frame, f_trace) < 0 ? -1 : 1;
    if (done > 0) depth++;
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
    f_trace = PyObject_GetAttr((PyObject *)frame, f_trace_name);
    if (f_trace == NULL) return -1;
    if (!PyTuple_CheckExact(f_trace) || PyTuple_GET_SIZE(f_trace) != TRACE_FIELDS || !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, TABLE)) ||
        !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, PENDING)) || PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, PENDING)) != 1) {
        Py_DECREF(f_trace);
        return 0;
    }
    lasti = event == PyTrace_RETURN ? -1 : PyFrame_GetLasti(frame);
    index = lasti / 2;
    pending = PyTuple_GET_ITEM(f_trace, PENDING);
    look = PyTuple_GET_ITEM(f_trace, CALLBACK);
    if (lasti < 0 && look == Py_None) depth--;
    if (lasti < 0 ? look == Py_None : !PyByteArray_AS_STRING(pending)[0] && index < PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, TABLE)) && ((kind = PyByteArray_AS_STRING(PyTuple_GET_ITEM(f_trace, TABLE))[index]) == NOTHING || needs_no_callback(frame, f_trace, index, kind))) {
        Py_DECREF(f_trace);
        return PyErr_Occurred() ? -1 : 0;
    }
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

/* trace_frames(callback, open_frame, watch, plain_types, python_floats, receivers, known_code): call a function with each frame of this thread that begins,
   until sys.settrace(None). Return whether that is possible.
   open_frame(frame, f_trace): returns the callback of a frame that began without one, and sets the frame's f_trace
   plain_types: types of operands whose use needs no callback; python_floats: the numbers of the traced values that are Python floats
   receivers: is empty if no C code receives the values that functions return */
PyObject *trace_frames(PyObject *module, PyObject *args) {
    PyObject *callback, *opener, *the_watch, *types, *floats, *receiving, *known;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!O!O!O!", &callback, &opener, &the_watch, &PyFrozenSet_Type, &types, &PySet_Type, &floats, &PyDict_Type, &receiving, &PyDict_Type, &known)) return NULL;
    if (f_trace_name == NULL) {
        f_trace_lines_name = PyUnicode_InternFromString("f_trace_lines");
        f_trace_opcodes_name = PyUnicode_InternFromString("f_trace_opcodes");
        ignored_name = PyUnicode_InternFromString("ignored_frame");
        failed_name = PyUnicode_InternFromString("failed");
        f_trace_name = PyUnicode_InternFromString("f_trace");
        if (failed_name == NULL || f_trace_lines_name == NULL || f_trace_opcodes_name == NULL || ignored_name == NULL || f_trace_name == NULL) return NULL;
    }
    Py_XSETREF(open_frame, Py_NewRef(opener));
    Py_XSETREF(watch, Py_NewRef(the_watch));
    Py_XSETREF(plain_types, Py_NewRef(types));
    Py_XSETREF(python_floats, Py_NewRef(floats));
    Py_XSETREF(receivers, Py_NewRef(receiving));
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
    Py_CLEAR(python_floats);
    Py_CLEAR(receivers);
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
