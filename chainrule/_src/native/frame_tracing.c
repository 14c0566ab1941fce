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

/* enable_untraced(enable): start or stop running marked code of this thread without tracing. Return whether that is possible here. */
PyObject *enable_untraced(PyObject *module, PyObject *flag) {
    PyThreadState *thread = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(thread);
    int enable = PyObject_IsTrue(flag);
    (void)module;
    if (enable < 0) return NULL;
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

   The f_trace of a traced frame is a tuple (table, pending, callback). `table` is a bytearray with one byte for each instruction; zero means
   that the instruction needs no callback. `pending` is a bytearray of one byte; if it is set, the next instruction gets a callback in any
   case. The callback gets the offset of an instruction, or -1 when the frame ends, and returns the new value of `pending`. */

static PyObject *f_trace_name = NULL;

static int on_trace_event(PyObject *callback, PyFrameObject *frame, int event, PyObject *arg) {
    PyObject *f_trace, *result = NULL, *offset;
    int lasti;
    (void)arg;
    if (event == PyTrace_CALL) {
        Py_INCREF(callback); /* the call may replace the trace function */
        result = PyObject_CallOneArg(callback, (PyObject *)frame);
        Py_DECREF(callback);
        Py_XDECREF(result);
        if (result == NULL) PyEval_SetTrace(NULL, NULL);
        return result == NULL ? -1 : 0;
    }
    if (event != PyTrace_OPCODE && event != PyTrace_RETURN) return 0;
    f_trace = PyObject_GetAttr((PyObject *)frame, f_trace_name);
    if (f_trace == NULL) return -1;
    if (!PyTuple_CheckExact(f_trace) || PyTuple_GET_SIZE(f_trace) != 3 || !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, 0)) ||
        !PyByteArray_CheckExact(PyTuple_GET_ITEM(f_trace, 1)) || PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, 1)) != 1) {
        Py_DECREF(f_trace);
        return 0;
    }
    lasti = event == PyTrace_RETURN ? -1 : PyFrame_GetLasti(frame);
    if (lasti >= 0 && !PyByteArray_AS_STRING(PyTuple_GET_ITEM(f_trace, 1))[0] && lasti / 2 < PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, 0)) &&
        !PyByteArray_AS_STRING(PyTuple_GET_ITEM(f_trace, 0))[lasti / 2]) {
        Py_DECREF(f_trace);
        return 0;
    }
    offset = PyLong_FromLong(lasti);
    if (offset != NULL) result = PyObject_CallOneArg(PyTuple_GET_ITEM(f_trace, 2), offset);
    Py_XDECREF(offset);
    if (result != NULL && PyByteArray_GET_SIZE(PyTuple_GET_ITEM(f_trace, 1)) == 1) PyByteArray_AS_STRING(PyTuple_GET_ITEM(f_trace, 1))[0] = result == Py_True;
    Py_XDECREF(result);
    Py_DECREF(f_trace);
    return result == NULL ? -1 : 0; /* do not stop tracing: instructions that run while the frame ends are traced as well */
}

/* trace_frames(callback): call a function with each frame of this thread that begins, until sys.settrace(None). Return whether that is possible. */
PyObject *trace_frames(PyObject *module, PyObject *callback) {
    (void)module;
    if (f_trace_name == NULL && (f_trace_name = PyUnicode_InternFromString("f_trace")) == NULL) return NULL;
    PyEval_SetTrace(on_trace_event, callback);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

#else

PyObject *trace_frames(PyObject *module, PyObject *callback) {
    (void)module;
    (void)callback;
    Py_RETURN_FALSE;
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
