/// Carries requests of a client to a server.
///
/// The client's one seam to the network. libcurl is the default; a host application may provide its
/// own transport, for example over a background session.
///
/// A transport follows no redirect, decodes no content coding and adds no `Accept-Encoding`. It
/// reports a link on which no byte moves as ``TransportError/Kind/stalled``.
public protocol HTTPTransport: Sendable {
    /// Sends a request and returns when the head of the final response has arrived.
    ///
    /// A status of 4xx or 5xx is a response, not an error. Canceling the task ends the exchange and
    /// throws an error of kind ``TransportError/Kind/canceled``.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// Ends every exchange and releases connections; called once, when the client closes.
    func shutdown() async
}
