#ifndef KEDGE_CCRYPTO_H
#define KEDGE_CCRYPTO_H

// OpenSSL 3 deprecates the SHA256_* functions in favour of EVP. EVP hides the state of a running
// digest, which a transfer needs to continue in another process. The functions stay exported in
// every 3.x (SHA256_Init(3)) and use the same SHA-NI code. The contexts of the other digests are
// plain structures, too, and can be copied while they run.
#define OPENSSL_SUPPRESS_DEPRECATED
// CRYPTO_memcmp(3), a comparison in constant time.
#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#endif
