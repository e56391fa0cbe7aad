internal import HTTPTypes

/// An answer with its body.
struct ServerMessage: Sendable {
    let head: ServerReply
    /// As much of the body as the ``BodyPolicy`` reads.
    let body: [UInt8]

    var status: Int { head.status }
    var fields: HTTPFields { head.headerFields }
    var isSuccess: Bool { head.isSuccess }
    var answer: ServerAnswer { head.answer }

    /// Returns the failure that an unsuccessful answer stands for.
    func failure(_ operation: String, _ subject: RequestFailure.Subject) -> RequestFailure {
        RequestFailure(head, body: body, operation: operation, subject: subject)
    }
}
