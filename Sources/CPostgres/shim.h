/*
 * libpq for Swift. Nothing of it is variadic or a macro that Swift cannot read, so there is nothing to wrap.
 *
 * https://www.postgresql.org/docs/current/libpq.html
 */
#ifndef KEDGE_CPOSTGRES_SHIM_H
#define KEDGE_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

/* tcp_user_timeout came with 12, gssencmode too; PQconninfoParse keeps URLs whole since 9.2. */
#ifndef LIBPQ_HAS_PIPELINING
#error "Kedge needs libpq 14 or newer"
#endif

#endif
