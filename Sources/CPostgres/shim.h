/*
 * libpq for Swift. It has no variadic functions or unreadable macros, so it needs no wrappers.
 *
 * https://www.postgresql.org/docs/current/libpq.html
 */
#ifndef KEDGE_CPOSTGRES_SHIM_H
#define KEDGE_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

/* tcp_user_timeout and gssencmode exist since 12; PQconninfoParse accepts URLs since 9.2. */
#ifndef LIBPQ_HAS_PIPELINING
#error "Kedge needs libpq 14 or newer"
#endif

#endif
