/*
 * libcurl for Swift: typed inline wrappers of the variadic functions, which Swift cannot call.
 * There is no logic here. Every wrapper returns the code of the one libcurl call it makes.
 *
 * https://curl.se/libcurl/c/curl_easy_setopt.html names the type each option takes; the caller
 * chooses the wrapper by that type.
 */
#ifndef KEDGE_CCURL_SHIM_H
#define KEDGE_CCURL_SHIM_H

/* The type-checking macros of curl.h need constants, and these wrappers pass variables. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x075700
#error "Kedge needs libcurl 7.87.0 or newer (CURLOPT_QUICK_EXIT)"
#endif

/* One function pointer type per kind of callback. A callback is never NULL here. */
typedef size_t (*ccurl_write_function)(
    char *_Nonnull bytes, size_t size, size_t count, void *_Nonnull context);
typedef size_t (*ccurl_read_function)(
    char *_Nonnull bytes, size_t size, size_t count, void *_Nonnull context);
typedef int (*ccurl_seek_function)(void *_Nonnull context, curl_off_t offset, int origin);
typedef int (*ccurl_progress_function)(
    void *_Nonnull context, curl_off_t download_total, curl_off_t downloaded,
    curl_off_t upload_total, curl_off_t uploaded);
typedef int (*ccurl_prerequest_function)(
    void *_Nonnull context, char *_Nullable remote_address, char *_Nullable local_address,
    int remote_port, int local_port);

static inline CURLcode ccurl_global_init(void) {
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Options by the type of their value. */

static inline CURLcode ccurl_easy_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_offset(
    CURL *_Nonnull easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_string(
    CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_pointer(
    CURL *_Nonnull easy, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_list(
    CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

/* Callbacks, one setter each. */

static inline CURLcode ccurl_easy_set_write_function(
    CURL *_Nonnull easy, ccurl_write_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_header_function(
    CURL *_Nonnull easy, ccurl_write_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_read_function(
    CURL *_Nonnull easy, ccurl_read_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_READFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_seek_function(
    CURL *_Nonnull easy, ccurl_seek_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_progress_function(
    CURL *_Nonnull easy, ccurl_progress_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_prerequest_function(
    CURL *_Nonnull easy, ccurl_prerequest_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

/* Information, by the type of its value. */

static inline CURLcode ccurl_easy_get_long(
    CURL *_Nonnull easy, CURLINFO info, long *_Nonnull answer) {
    return curl_easy_getinfo(easy, info, answer);
}

static inline CURLcode ccurl_easy_get_pointer(
    CURL *_Nonnull easy, CURLINFO info, void *_Nullable *_Nonnull answer) {
    return curl_easy_getinfo(easy, info, answer);
}

#endif
