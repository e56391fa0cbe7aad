#ifndef KEDGE_CCRYPTO_H
#define KEDGE_CCRYPTO_H

// OpenSSL 3 marks the SHA256_* functions deprecated in favour of EVP, but EVP hides the state of a
// running digest, and a transfer that continues in another process needs exactly that state. The
// functions stay exported in every 3.x (SHA256_Init(3)) and use the same SHA-NI code. The contexts of the
// other digests are plain structures, too, that can be copied while they run.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

#endif
