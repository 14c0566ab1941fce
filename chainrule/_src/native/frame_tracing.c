/* While Python's instructions are watched by sys.settrace, the code of libraries runs as if nobody watched: it is not looked into,
   and being asked about each of its instructions is what takes the time. For Python 3.11; later ones have sys.monitoring, which is
   told itself what not to report. */

#include "loops.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)

/* where a frame's record has its code, in words */
#define CODE_WORD 4

static Py_ssize_t mark = -1;          /* which extra word of a code object says that it is quiet */
static PyThreadState *watched = NULL; /* the thread that is watched */
static int depth = 0;                 /* how many who watch there are, one within the other */
static int quiet = 0;                 /* whether it is in quiet code now */
static _PyFrameEvalFunction before = NULL;

static int is_quiet(struct _PyInterpreterFrame *frame) {
    void *found = NULL;
    return _PyCode_GetExtra(((PyObject **)frame)[CODE_WORD], mark, &found) == 0 && found != NULL;
}

static PyObject *evaluate(PyThreadState *thread, struct _PyInterpreterFrame *frame, int throwing) {
    PyObject *result;
    int enters;
    if (thread != watched || (enters = is_quiet(frame)) == quiet) return before(thread, frame, throwing);
    quiet = enters;
    if (enters) PyThreadState_EnterTracing(thread);
    else PyThreadState_LeaveTracing(thread);
    result = before(thread, frame, throwing);
    if (enters) PyThreadState_LeaveTracing(thread);
    else PyThreadState_EnterTracing(thread);
    quiet = !enters;
    return result;
}

/* quieten(begin): from now on, or no longer, marked code of this thread runs unwatched; whether there is such a way here. */
PyObject *quieten(PyObject *module, PyObject *begin) {
    PyThreadState *thread = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(thread);
    int starts = PyObject_IsTrue(begin);
    (void)module;
    if (starts < 0) return NULL;
    if (mark < 0) mark = _PyEval_RequestCodeExtraIndex(NULL);
    if (mark < 0 || (watched != NULL && watched != thread)) Py_RETURN_FALSE;
    if (starts && depth++ == 0) {
        before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
        watched = thread;
        quiet = 0;
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    } else if (!starts && depth > 0 && --depth == 0) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, before);
        watched = NULL;
    }
    Py_RETURN_TRUE;
}

PyObject *mark_quiet(PyObject *module, PyObject *code) {
    (void)module;
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "only code is quiet");
        return NULL;
    }
    if (mark >= 0 && _PyCode_SetExtra(code, mark, &mark) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- being told of instructions

   A frame that is looked at has as its f_trace a tuple: a bytearray with a byte for each instruction of its code, zero for those
   that need not be looked at; one with a single byte, which is set while the next instruction is to be looked at whatever it is;
   and what is called with the offset of an instruction, or with -1 when the frame ends, and says whether the next one is. */

static PyObject *name_of_trace = NULL;

static int told(PyObject *begin, PyFrameObject *frame, int what, PyObject *arg) {
    PyObject *found, *result = NULL, *offset;
    int at;
    (void)arg;
    if (what == PyTrace_CALL) {
        Py_INCREF(begin); /* the call may set another trace function */
        result = PyObject_CallOneArg(begin, (PyObject *)frame);
        Py_DECREF(begin);
        Py_XDECREF(result);
        if (result == NULL) PyEval_SetTrace(NULL, NULL);
        return result == NULL ? -1 : 0;
    }
    if (what != PyTrace_OPCODE && what != PyTrace_RETURN) return 0;
    found = PyObject_GetAttr((PyObject *)frame, name_of_trace);
    if (found == NULL) return -1;
    if (!PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 3 || !PyByteArray_CheckExact(PyTuple_GET_ITEM(found, 0)) ||
        !PyByteArray_CheckExact(PyTuple_GET_ITEM(found, 1)) || PyByteArray_GET_SIZE(PyTuple_GET_ITEM(found, 1)) != 1) {
        Py_DECREF(found);
        return 0;
    }
    at = what == PyTrace_RETURN ? -1 : PyFrame_GetLasti(frame);
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
PyObject *tell(PyObject *module, PyObject *begin) {
    (void)module;
    if (name_of_trace == NULL && (name_of_trace = PyUnicode_InternFromString("f_trace")) == NULL) return NULL;
    PyEval_SetTrace(told, begin);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

#else

PyObject *tell(PyObject *module, PyObject *begin) {
    (void)module;
    (void)begin;
    Py_RETURN_FALSE;
}

PyObject *quieten(PyObject *module, PyObject *begin) {
    (void)module;
    (void)begin;
    Py_RETURN_FALSE;
}

PyObject *mark_quiet(PyObject *module, PyObject *code) {
    (void)module;
    (void)code;
    Py_RETURN_NONE;
}

#endif
