/* What the C modules of the rows share: everything that is done to a private row but the vote. */
#ifndef PEMEANS_ROWS_H
#define PEMEANS_ROWS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

#define GRID_UNIT 4194304             /* grid.py */
#define SAFELY_SHORTER (1 - 0x1p-40)  /* certain not to be too long, whatever the rounding */

PyObject *py_residuals(PyObject *self, PyObject *args);
PyObject *py_squared_gaps(PyObject *self, PyObject *args);

#endif
