internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Sends interim responses (RFC 9110 section 15.2) to the request that a handler answers.
///
/// A proxy may drop them and a client may ignore them, so nothing may depend on their arrival.
struct InterimResponses: Sendable {
    private let channel: any Channel

    /// Returns nil when the policy does not allow them, and when there is no connection, as in a
    /// simulation.
    ///
    /// - Parameter fields: Header fields of the request.
    init?(_ context: KedgeRequestContext, to fields: HTTPFields) {
        guard context.connection?.interim.allows(fields) == true else { return nil }
        channel = context.channel
    }

    /// Sends an interim response before everything that the handler sends later.
    ///
    /// Does not wait, because a client that does not read must not delay the writing of its bytes.
    /// Sends nothing while the channel is not writable, so that interim responses do not pile up.
    func send(_ head: HTTPResponse) {
        guard channel.isWritable else { return }
        channel.writeAndFlush(HTTPResponsePart.head(head), promise: nil)
    }
}
