import CCurl
package import KedgeTransport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension CurlFailure {
    /// Details of a failure that libcurl reports besides its code; zero if it has none.
    struct Findings {
        /// `errno` of the connection that failed.
        var systemError = 0
        /// OpenSSL's result of verifying the certificate (openssl-verification-options(1)).
        var verification = 0
        /// The status of a proxy's answer to `CONNECT`.
        var proxyStatus = 0
        var detail = ""
    }

    /// `X509_V_OK`, `X509_V_ERR_CERT_NOT_YET_VALID`, `X509_V_ERR_CERT_HAS_EXPIRED` and
    /// `X509_V_ERR_HOSTNAME_MISMATCH` of OpenSSL's x509_vfy.h.
    private enum Verification {
        static let nothingWrong = 0
        /// The value before the handshake; libcurl leaves it in place when the name is wrong.
        static let unset = 1
        static let notYetValid = 9
        static let expired = 10
        static let wrongHost = 62
    }

    static func reason(for result: CURLcode, _ findings: Findings) -> ConnectionCause {
        if findings.proxyStatus >= 300 { return .proxyRefused }
        return switch result {
        case CURLE_COULDNT_RESOLVE_HOST: .nameUnresolved
        case CURLE_COULDNT_RESOLVE_PROXY: .proxyUnresolved
        case CURLE_PROXY: .proxyRefused
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED:
            connectionReason(Int32(truncatingIfNeeded: findings.systemError))
        case CURLE_OPERATION_TIMEDOUT: .timedOut
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING: .closed
        case CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_RECV_ERROR: .reset
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS:
            certificateReason(findings.verification)
        case CURLE_SSL_CACERT_BADFILE: .trustFileUnreadable
        case CURLE_SSL_CONNECT_ERROR: handshakeReason(findings.detail)
        default: isTLS(result) ? .tlsRefused : isViolation(result) ? .notHTTP : .other
        }
    }

    private static func connectionReason(_ number: Int32) -> ConnectionCause {
        switch number {
        case ECONNREFUSED: .refused
        case ECONNRESET: .reset
        case ETIMEDOUT: .timedOut
        default: .unreachable
        }
    }

    /// Translates OpenSSL's verification result. A success means a wrong host name, which libcurl
    /// itself compares afterwards.
    package static func certificateReason(_ verification: Int) -> ConnectionCause {
        switch verification {
        case Verification.nothingWrong, Verification.unset, Verification.wrongHost:
            .certificateWrongHost
        case Verification.expired: .certificateExpired
        case Verification.notYetValid: .certificateNotYetValid
        default: .certificateUntrusted
        }
    }

    /// Distinguishes a cut handshake from a refused one. Both have the same code, but only a
    /// refusal has an OpenSSL error.
    private static func handshakeReason(_ detail: String) -> ConnectionCause {
        guard detail.contains("error:"), !detail.contains("unexpected eof") else { return .reset }
        return .tlsRefused
    }
}
