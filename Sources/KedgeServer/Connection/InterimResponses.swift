internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Answers that come before the answer (RFC 9110 section 15.2), to the request that a handler answers.
///
/// A proxy may drop them and a client may not look, so nothing may depend on one having arrived.
struct InterimResponses: Sendable {
    private let channel: any Channel

    /// Nil where they are not wanted on the way to the client, and where there is no connection, as
    /// in a simulation.
    ///
    /// - Parameter fields: Those of the request.
    init?(_ context: KedgeRequestContext, to fields: HTTPFields) {
        guard context.connection?.interim.allows(fields) == true else { return nil }
        channel = context.channel
    }

    /// Sends one, before everything that the handler sends later.
    ///
    /// Nobody waits for it, for a client that does not read must not hold up the writing of its bytes;
    /// and it is left out while the client does not read, so that they do not pile up.
    func send(_ head: HTTPResponse) {
        guard channel.isWritable else { return }
        channel.writeAndFlush(HTTPResponsePart.head(head), promise: nil)
    }
}
