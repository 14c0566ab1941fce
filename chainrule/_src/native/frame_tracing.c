/* While Python's instructions are watched by sys.settrace, the code of libraries runs as if nobody watched: it is not looked into,
   and being asked about each of its instructions is what takes the time. For Python 3.11; later ones have sys.monitoring, which is
   told itself what not to report. */

#include "loops.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)

/* where a frame's record has its code, in words */
#define CODE_WORD 4

static Py_ssize_t code_extra_index = -1;          /* which extra word of a code object says that it is quiet */
static PyThreadState *traced_thread = NULL; /* the thread that is watched */
static int enable_count = 0;                 /* how many who watch there are, one within the other */
static int is_suspended = 0;                 /* whether it is in quiet code now */
static _PyFrameEvalFunction original_evaluate = NULL;

static int is_untraced(struct _PyInterpreterFrame *frame) {
    void *found = NULL;
    return _PyCode_GetExtra(((PyObject **)frame)[CODE_WORD], code_extra_index, &found) == 0 && found != NULL;
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

/* quieten(begin): from now on, or no longer, marked code of this thread runs unwatched; whether there is such a way here. */
PyObject *enable_untraced(PyObject *module, PyObject *begin) {
    PyThreadState *thread = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(thread);
    int enable = PyObject_IsTrue(begin);
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

/* ---- being told of instructions

   A frame that is looked at has as its f_trace a tuple: a bytearray with a byte for each instruction of its code, zero for those
   that need not be looked at; one with a single byte, which is set while the next instruction is to be looked at whatever it is;
   and what is called with the offset of an instruction, or with -1 when the frame ends, and says whether the next one is. */

static PyObject *f_trace_name = NULL;

static int on_trace_event(PyObject *begin, PyFrameObject *frame, int event, PyObject *arg) {
    PyObject *found, *result = NULL, *offset;
    int at;
    (void)arg;
    if (event == PyTrace_CALL) {
        Py_INCREF(begin); /* the call may set another trace function */
        result = PyObject_CallOneArg(begin, (PyObject *)frame);
        Py_DECREF(begin);
        Py_XDECREF(result);
        if (result == NULL) PyEval_SetTrace(NULL, NULL);
        return result == NULL ? -1 : 0;
    }
    if (event != PyTrace_OPCODE && event != PyTrace_RETURN) return 0;
    found = PyObject_GetAttr((PyObject *)frame, f_trace_name);
    if (found == NULL) return -1;
    if (!PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 3 || !PyByteArray_CheckExact(PyTuple_GET_ITEM(found, 0)) ||
        !PyByteArray_CheckExact(PyTuple_GET_ITEM(found, 1)) || PyByteArray_GET_SIZE(PyTuple_GET_ITEM(found, 1)) != 1) {
        Py_DECREF(found);
        return 0;
    }
    at = event == PyTrace_RETURN ? -1 : PyFrame_GetLasti(frame);
    if (at >= 0 && !PyByteArray_AS_STRING(PyTuple_GET_ITEM(found, 1))[0] && at / 2 < PyByteArray_GET_SIZE(PyTuple_GET_ITEM(found, 0)) &&
        !PyByteArray_AS_STRING(PyTuple_GET_ITEM(found, 0))[at / 2]) {
        Py_DECREF(found);
        return 0;
    }
    offset = PyLong_FromLong(at);
    if (offset != NULL) result = PyObject_CallOneArg(PyTuple_GET_ITEM(found, 2), offset);
    Py_XDECREF(offset);
    if (result != NULL && PyByteArray_GET_SIZE(PyTuple_GET_ITEM(found, 1)) == 1) PyByteArray_AS_STRING(PyTuple_GET_ITEM(found, 1))[0] = result == Py_True;
    Py_XDECREF(result);
    Py_DECREF(found);
    return result == NULL ? -1 : 0; /* and goes on: what the function does while it ends is looked at as well */
}

/* tell(begin): have this thread's frames handed to a function when they begin, until sys.settrace(None); whether it can be done here. */
PyObject *trace_frames(PyObject *module, PyObject *begin) {
    (void)module;
    if (f_trace_name == NULL && (f_trace_name = PyUnicode_InternFromString("f_trace")) == NULL) return NULL;
    PyEval_SetTrace(on_trace_event, begin);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

#else

PyObject *trace_frames(PyObject *module, PyObject *begin) {
    (void)module;
    (void)begin;
    Py_RETURN_FALSE;
}

PyObject *enable_untraced(PyObject *module, PyObject *begin) {
    (void)module;
    (void)begin;
    Py_RETURN_FALSE;
}

PyObject *mark_untraced(PyObject *module, PyObject *code) {
    (void)module;
    (void)code;
    Py_RETURN_NONE;
}

#endif
