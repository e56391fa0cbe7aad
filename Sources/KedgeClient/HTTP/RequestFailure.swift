internal import Foundation
package import HTTPTypes
package import KedgeModel
package import KedgeTransport

/// A failed request, with a code of the error table.
package struct RequestFailure: Error, Sendable {
    package let code: ErrorCode
    /// For example `finalize`.
    let operation: String
    /// The answer that caused it; nil when there was none.
    let answer: ServerAnswer?
    /// The wait that the server asked for.
    let retryAfter: Duration?
    /// The server's problem document in Kedge's form, if it sent one.
    let problem: ProblemDocument?
    /// Text of another server's problem document (RFC 9457).
    let serverText: String?
    /// The transport error that caused it.
    let transport: TransportError?
    /// Sentence that replaces the table's one where more is known; safe for strangers.
    var explanation: String?
    /// Whether the answer is not one of a Kedge server.
    var isForeign = false
    /// Whether an intermediary answered in the server's place, such as a captive portal. Such an
    /// answer says nothing about a session or a file, and is temporary.
    var isFromIntermediary = false
    /// Whether the request carried no credentials.
    var lacksToken = false
    /// Whether a link was the credential of the request.
    var isByLink = false
    /// Whether a request of the native protocol was answered at an address of tus uploads.
    var speaksTus = false
    /// Number of tries in a row without progress, including this one.
    var attempt = 1
    /// Size of a body that an intermediary refused as too large.
    private(set) var refusedByteCount: Int64?

    init(
        _ code: ErrorCode, operation: String, answer: ServerAnswer? = nil,
        retryAfter: Duration? = nil, problem: ProblemDocument? = nil, serverText: String? = nil,
        transport: TransportError? = nil, explanation: String? = nil, isForeign: Bool = false,
        isFromIntermediary: Bool = false
    ) {
        self.code = code
        self.operation = operation
        self.answer = answer
        self.retryAfter = retryAfter
        self.problem = problem
        self.serverText = serverText
        self.transport = transport
        self.explanation = explanation
        self.isForeign = isForeign
        self.isFromIntermediary = isFromIntermediary
    }

    /// Whether the same request can succeed later without any change.
    var isRetryable: Bool {
        isFromIntermediary || transport?.isTransient ?? code.facts.isRetryable
    }

    /// Whether no connection could be made: the network is at fault, not the request.
    var isOffline: Bool { transport?.kind == .offline }

    /// Whether the server is unreachable, or reports that it cannot serve now. Waiting for it uses
    /// no budget. A connection that breaks during an answer is different: the server is there.
    var isOutage: Bool {
        guard isRetryable else { return false }
        guard let answer else { return transport != nil }
        return isFromIntermediary
            || transport == nil && [429, 502, 503, 504].contains(answer.status)
    }

    /// Whether the server may be reachable but unable to serve: it failed, or is overloaded.
    var isServerTrouble: Bool {
        isOutage || answer.map { $0.status >= 500 } ?? false
    }

    /// Whether the answer is a refusal that only a Kedge server gives.
    var isFromKedge: Bool { answer != nil && !isForeign && problem != nil }

    var isCanceled: Bool { transport?.kind == .canceled }

    /// Whether the connection broke on the way: part of the body may have arrived.
    var isInterrupted: Bool { transport.map { $0.kind != .offline } ?? false }

    /// Whether to send less in parallel.
    var isCongestion: Bool {
        switch transport?.kind {
        case .stalled, .timedOut: true
        case nil: [.busy, .unavailable, .requestTimeout].contains(code)
        default: false
        }
    }

    /// A short cause with advice, safe for strangers.
    package var message: String {
        if let refusedByteCount {
            return "A proxy in front of the service refused a body of \(refusedByteCount) bytes as"
                + " too large."
        }
        if isBodyRefused, code == .requestTooLarge {
            return "A proxy in front of the service refused the request as too large (\(source))."
        }
        if let explanation {
            // The other server may explain the cause itself.
            return [explanation, serverText == nil ? nil : detail].compactMap { $0 }
                .joined(separator: " ")
        }
        return transport?.connection?.text.map { $0 + "." } ?? plainMessage
    }

    /// Returns the same failure with another code.
    func with(_ code: ErrorCode, _ explanation: String?) -> RequestFailure {
        var other = RequestFailure(
            code, operation: operation, answer: answer, retryAfter: retryAfter, problem: problem,
            serverText: serverText, transport: transport)
        (other.isForeign, other.lacksToken, other.isByLink) = (isForeign, lacksToken, isByLink)
        other.speaksTus = speaksTus
        other.isFromIntermediary = isFromIntermediary
        (other.explanation, other.attempt) = (explanation, attempt)
        other.refusedByteCount = refusedByteCount
        return other
    }

    /// The message when no connection failure is known.
    private var plainMessage: String {
        switch transport?.kind {
        case .offline: "The server cannot be reached."
        case .dropped: "The connection was lost."
        case .stalled, .timedOut: "The connection timed out."
        case .tls: "No secure connection to the server; check its certificate and its address."
        case .bodyUnreadable: "The local file cannot be read."
        case .canceled, .other, nil:
            [sentence, detail, limitText, addressAdvice].compactMap { $0 }.joined(separator: " ")
        }
    }

    /// A sentence with the limit that the server reports; nil if it reports none.
    private var limitText: String? {
        switch code {
        case .fileTooLarge:
            return problem?.maxBytes.map { "The maximum is \($0) bytes." }
        case .quotaExceeded:
            guard let limit = problem?.limitBytes else { return nil }
            let usage = [
                problem?.usedBytes.map { "\($0) bytes are stored" },
                problem?.reservedBytes.map { "\($0) bytes are reserved for unfinished uploads" },
            ].compactMap { $0 }
            let separator = usage.isEmpty ? "" : "; "
            return "The limit is \(limit) bytes\(separator)\(usage.joined(separator: ", "))."
        default: return nil
        }
    }

    /// Advice about an address of tus uploads, and about the refusal of a host name, whose sentence
    /// is that of the service's gate.
    private var addressAdvice: String? {
        if speaksTus { return "The address is one for tus uploads: use --protocol tus." }
        return problem?.detail == "This server does not serve the name in Host."
            ? "Its setting allowedHosts can name the host." : nil
    }

    /// A sentence about the answer. Names the server if the user may expect another one.
    private var sentence: String {
        guard let answer else { return code.facts.sentence }
        let who = answer.hostAndPort ?? "The server"
        switch code {
        // Another token or link of the owner does not help.
        case .forbidden where problem?.detail == Self.blockedOwnerText:
            return Self.blockedOwnerText
        // The detail says whose limit it is: that of a link or of an owner.
        case .fileTooLarge where problem?.detail != nil: return "The file is too large."
        case .unauthenticated where isByLink:
            return "\(who) does not accept the link (status \(answer.status))."
        case .forbidden where isByLink:
            return "The link does not permit this (\(source))."
        case .unauthenticated where lacksToken:
            return "\(who) requires a token (status \(answer.status)), and none was sent:"
                + " \(Self.tokenAdvice)."
        case .forbidden where lacksToken:
            return "\(who) does not allow this without a token (status \(answer.status)):"
                + " \(Self.tokenAdvice)."
        case .unauthenticated:
            return "\(who) does not accept the token (status \(answer.status)):"
                + " \(Self.otherTokenAdvice)."
        case .forbidden:
            return "\(who) does not allow this with the token (status \(answer.status)); for"
                + " another one, \(Self.otherTokenAdvice)."
        default:
            if isFromIntermediary {
                return "\(who) answers with status \(answer.status), but not as a Kedge server."
            }
            guard isForeign || code == .protocolViolation else { return code.facts.sentence }
            return "\(code.facts.sentence.dropLast()) (\(source))."
        }
    }

    /// The service's detail for the requests of a blocked owner.
    private static let blockedOwnerText = "The owner is blocked."
    private static let tokenAdvice = "run `kedge login`, or set KEDGE_TOKEN beside --server"
    private static let otherTokenAdvice = "run `kedge login` again, or correct KEDGE_TOKEN"

    /// Host, port and status of the answer.
    private var source: String {
        [answer?.hostAndPort, answer.map { "status \($0.status)" }].compactMap { $0 }
            .joined(separator: ", ")
    }

    /// Longest server text that is passed on, in characters.
    private static let maxDetailCount = 300

    /// The server's explanation as a sentence; nil if it adds nothing.
    private var detail: String? {
        guard let text = problem?.detail ?? serverText else { return nil }
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard !words.isEmpty, words != sentence else { return nil }
        let short = words.prefix(Self.maxDetailCount)
        let isSentence = short.last.map { ".!?".contains($0) } ?? false
        return short.count < words.count ? "\(short)…" : isSentence ? "\(short)" : "\(short)."
    }
}

extension RequestFailure {
    /// Whether an intermediary refused the body as too large: it sends no problem document.
    var isBodyRefused: Bool { answer?.status == 413 && problem == nil }

    /// Whether the answer may only mean that the body broke off on its way to an intermediary:
    /// HAProxy then answers 400.
    var mayBeCutShort: Bool { answer?.status == 400 && problem == nil }

    /// Number of such answers in a row after which the intermediary is taken to refuse every body.
    static let maxCutShortCount = 3

    /// Returns the same failure with the size of the body, if an intermediary refused it.
    func refusing(_ byteCount: Int64) -> RequestFailure {
        guard isBodyRefused else { return self }
        var failure = self
        failure.refusedByteCount = byteCount
        return failure
    }

    /// Creates the failure for a transport error.
    ///
    /// - Parameter answer: Head of an answer whose body did not arrive completely.
    package init(_ error: TransportError, operation: String, answer: ServerAnswer? = nil) {
        let code: ErrorCode =
            switch error.kind {
            case .offline, .dropped, .stalled, .timedOut: .offline
            case .canceled: .canceled
            case .tls: Self.code(of: error.connection?.cause)
            case .bodyUnreadable, .other: .protocolViolation
            }
        self.init(code, operation: operation, answer: answer, transport: error)
    }

    private static func code(of cause: ConnectionCause?) -> ErrorCode {
        if cause == .trustFileUnreadable { return .usage }
        return cause?.isCertificate == true ? .certificateRejected : .tlsRefused
    }

    /// Creates the failure that an answer reports.
    ///
    /// - Parameters:
    ///   - body: At most the first 64 KiB of the answer.
    ///   - subject: The subject of the request, which decides the meaning of a bare 404.
    package init(_ reply: ServerReply, body: [UInt8], operation: String, subject: Subject) {
        // Without a readable problem document, the status decides.
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(body))
        // A server may only report codes with a status: a full local disk, say, has none.
        let known = problem.flatMap { ErrorCode(rawValue: $0.code) }
            .flatMap { $0.facts.httpStatus == nil ? nil : $0 }
        let isReplaced =
            known == nil && subject.isOfKedge && !Self.statusesOfRequests.contains(reply.status)
        var answer = reply.answer
        answer.requestID = problem?.requestId ?? answer.requestID
        self.init(
            known ?? Self.code(ofStatus: reply.status, subject: subject, isReplaced: isReplaced),
            operation: operation, answer: answer,
            retryAfter: RetryAfter.parse(reply.headerFields[.retryAfter], now: .current),
            problem: problem,
            serverText: problem == nil ? Self.text(ofForeignProblem: body) : nil)
        isForeign = known == nil
        isFromIntermediary = isReplaced
        lacksToken = !reply.hasCredentials
        isByLink = reply.isByLink
        speaksTus = subject.isOfKedge && reply.headerFields[.tusResumable] != nil
    }

    /// Statuses with which an intermediary refuses this very request: waiting does not help.
    private static let statusesOfRequests: Set<Int> = [
        400, 401, 403, 407, 408, 411, 413, 414, 417, 431, 451,
    ]

    private static func text(ofForeignProblem body: [UInt8]) -> String? {
        struct ForeignProblem: Decodable {
            var title: String?
            var detail: String?
        }
        // HTML pages and plain text are for browsers and logs, not for an error message.
        let problem = try? JSONDecoder().decode(ForeignProblem.self, from: Data(body))
        return problem.flatMap { $0.detail ?? $0.title }
    }

    /// The subject of a request.
    package enum Subject: Sendable {
        /// An upload session of a Kedge.
        case session
        /// A file of a Kedge.
        case file
        /// A file anywhere.
        case resource
        /// An upload at a URL of its own, in a protocol that other servers share.
        case upload

        var isOfKedge: Bool { self == .session || self == .file }
    }

    /// Returns the code for an answer without one.
    ///
    /// - Parameter isReplaced: Whether an intermediary answered in the place of a Kedge server.
    private static func code(
        ofStatus status: Int, subject: Subject, isReplaced: Bool
    ) -> ErrorCode {
        if subject == .upload, let code = uploadCodes[status] { return code }
        if isReplaced, status < 500, status != 425, status != 429 { return .notKedge }
        return switch status {
        case 401: .unauthenticated
        case 403: .forbidden
        case 404: subject == .session ? .sessionNotFound : .fileNotFound
        case 410: subject == .session ? .sessionExpired : .fileGone
        case 408: .requestTimeout
        case 412: .preconditionFailed
        case 413: subject == .upload ? .fileTooLarge : .requestTooLarge
        case 416: .rangeNotSatisfiable
        case 429: .busy
        case 501, 505: subject == .resource ? .methodNotAllowed : .internalError
        case 502, 503, 504: .unavailable
        case 507: .storageFull
        case 500...599: .internalError
        case 400...499: .badRequest
        default: .protocolViolation
        }
    }

    /// Statuses with a special meaning in tus 1.0 and the IETF drafts.
    private static let uploadCodes: [Int: ErrorCode] = [
        404: .sessionNotFound, 405: .methodNotAllowed, 409: .offsetMismatch, 410: .sessionExpired,
        412: .uploadVersionUnsupported, 415: .unsupportedMediaType,
        // In neither specification; servers with locks answer with it.
        423: .busy,
        425: .busy, 460: .uploadChecksumMismatch, 501: .methodNotAllowed,
    ]
}

/// The `Retry-After` header field (RFC 9110 section 10.2.3).
package enum RetryAfter {
    /// Parses seconds or an HTTP date; nil for anything else and for the past.
    package static func parse(_ value: String?, now: Timestamp) -> Duration? {
        guard let value else { return nil }
        if let seconds = WireInteger.parse(value) { return .seconds(min(seconds, 86_400)) }
        guard let date = Timestamp(httpDate: value) else { return nil }
        let wait = date.duration(since: now)
        return wait > .zero ? wait : nil
    }
}

extension HTTPField.Name {
    static let xRequestID = constant("X-Request-Id")
    package static let chunkHash = constant("X-Chunk-Hash")
    package static let reprDigest = constant("Repr-Digest")
    static let tusResumable = constant("Tus-Resumable")
    package static let idempotencyKey = constant("Idempotency-Key")

    /// Returns a name that is known to be well formed.
    static func constant(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is a field name") }
        return name
    }
}
