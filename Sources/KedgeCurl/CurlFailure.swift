import CCurl

/// Translates libcurl's results into ``CurlError/Code``.
///
/// https://curl.se/libcurl/c/libcurl-errors.html
package enum CurlFailure {
    /// `CURLE_SSL_CONNECT_ERROR` as a plain number.
    static let handshakeFailed = Int32(CURLE_SSL_CONNECT_ERROR.rawValue)

    /// The progress of an exchange when libcurl failed; the meaning of the result depends on it.
    struct Progress {
        /// The request was about to be written to a connection.
        var hasRequestBegun: Bool
        /// A final response head was delivered.
        var hasResponseHead: Bool
    }

    static func code(for result: CURLcode, after progress: Progress) -> CurlError.Code {
        switch result {
        case CURLE_UNSUPPORTED_PROTOCOL:
            // libcurl reports an answer without a status line (HTTP/0.9) like this, too.
            progress.hasRequestBegun ? .protocolError : .invalidURL
        case CURLE_URL_MALFORMAT:
            .invalidURL
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            .couldNotResolve
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY:
            .couldNotConnect
        case CURLE_OPERATION_TIMEDOUT:
            .timedOut
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING:
            .closedEarly
        case CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND:
            .sendFailed
        case CURLE_RECV_ERROR:
            // A reset in the middle of a body is an early end.
            progress.hasResponseHead ? .closedEarly : .receiveFailed
        default:
            isTLS(result) ? .tlsFailed : isViolation(result) ? .protocolError : .internalError
        }
    }

    static func isViolation(_ result: CURLcode) -> Bool {
        switch result {
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_HTTP2_STREAM,
            CURLE_BAD_CONTENT_ENCODING:
            true
        default:
            false
        }
    }

    static func isTLS(_ result: CURLcode) -> Bool {
        switch result {
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
            true
        default:
            false
        }
    }
}
