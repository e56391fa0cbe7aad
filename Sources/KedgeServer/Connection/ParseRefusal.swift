internal import KedgeModel
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// The response to bytes that are not a request. No route or middleware has seen them.
struct ParseRefusal {
    let body: ByteBuffer
    private let document: ProblemDocument
    private let requestID = RequestID.make()
    private let cause: HTTPParserError

    init(_ error: HTTPParserError) {
        cause = error
        let isTooLarge = error == .headerOverflow
        document = ProblemDocument(
            code: .badRequest,
            detail: isTooLarge ? "The request head is larger than this server accepts." : nil,
            requestId: requestID)
        body = JSONOutput.encode(document)
    }

    /// The head, with the fields that the middleware adds to every error. It closes the connection,
    /// because the start of the next request is unknown.
    var head: HTTPResponseHead {
        HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: document.status),
            headers: [
                "content-type": "application/problem+json",
                "content-length": String(body.readableBytes), "cache-control": "no-store",
                "connection": "close", "x-request-id": requestID,
            ])
    }

    func log(to logger: Logger) {
        logger.info(
            "request",
            metadata: [
                "request.id": "\(requestID)", "http.status": "\(document.status)",
                "error.code": "\(document.code)", "error.cause": "\(RequestCause.text(cause))",
            ])
    }
}
