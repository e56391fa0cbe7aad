/*
 * wcwidth(3), which the C library declares only with _XOPEN_SOURCE.
 */
#ifndef KEDGE_CWIDTH_SHIM_H
#define KEDGE_CWIDTH_SHIM_H

#include <wchar.h>

int wcwidth(wchar_t character);

#endif
