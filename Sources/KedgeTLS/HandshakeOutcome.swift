/// The end of a TLS handshake; the raw value is its label in the metrics.
package enum HandshakeOutcome: String, CaseIterable, Sendable {
    case completed
    /// Client and server did not agree, or the client did not speak TLS.
    case failed
    /// The client closed the connection first, as scanners and some health checks do.
    case aborted
    /// The client took too long.
    case timeout
}
