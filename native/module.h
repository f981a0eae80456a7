/* The functions of the C module, all in the limited API: one build serves every Python from 3.11 on. */
#ifndef PEMEANS_MODULE_H
#define PEMEANS_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

PyObject *py_pack(PyObject *self, PyObject *args);
PyObject *py_kmeans(PyObject *self, PyObject *args);

#endif
