internal import Foundation
internal import HTTPTypes
internal import KedgeModel

/// A request that did not do what it was for, in the words of the error table.
struct RequestFailure: Error, Sendable {
    let code: ErrorCode
    /// For example `finalize`.
    let operation: String
    /// The answer behind it; nil when there was none.
    let answer: ServerAnswer?
    /// What the server asked to wait.
    let retryAfter: Duration?
    /// What the server said, when it said it the standard way.
    let problem: ProblemDocument?
    /// What another server than a Kedge said in a problem document (RFC 9457).
    let serverText: String?
    /// The failure of the transport behind it.
    let transport: TransportError?
    /// Words that replace the table's sentence where more is known; safe for strangers.
    var explanation: String?
    /// True when what answered did not answer as a Kedge does.
    var isForeign = false
    /// True when something else answered in the place of a Kedge, for example the page of a captive
    /// portal: that says nothing of a session or a file, and passes.
    var isFromIntermediary = false
    /// True when the request went without any credentials.
    var lacksToken = false
    /// Tries in a row that brought nothing, this one included.
    var attempt = 1
    /// Size of a body that something before the service refused as too large.
    private(set) var refusedByteCount: Int64?

    init(
        _ code: ErrorCode, operation: String, answer: ServerAnswer? = nil,
        retryAfter: Duration? = nil, problem: ProblemDocument? = nil, serverText: String? = nil,
        transport: TransportError? = nil
    ) {
        self.code = code
        self.operation = operation
        self.answer = answer
        self.retryAfter = retryAfter
        self.problem = problem
        self.serverText = serverText
        self.transport = transport
    }

    /// True when the same request can succeed later without anybody changing anything.
    var isRetryable: Bool {
        isFromIntermediary || transport?.isTransient ?? code.facts.isRetryable
    }

    /// True when no connection could be made: the network, not the request, is the trouble.
    var isOffline: Bool { transport?.kind == .offline }

    /// True when the server is out of reach, or says that it cannot serve now: waiting for it is no
    /// failure of the transfer and uses up no budget. A connection that breaks in the middle of an
    /// answer is another thing: there is a server.
    var isOutage: Bool {
        guard isRetryable else { return false }
        guard let answer else { return transport != nil }
        return isFromIntermediary
            || transport == nil && [429, 502, 503, 504].contains(answer.status)
    }

    /// True when the server may be there and cannot serve: it has failed, or has too much to do.
    var isServerTrouble: Bool {
        isOutage || answer.map { $0.status >= 500 } ?? false
    }

    /// True when the answer is a refusal as only a Kedge gives it.
    var isFromKedge: Bool { answer != nil && !isForeign && problem != nil }

    var isCanceled: Bool { transport?.kind == .canceled }

    /// True when the connection broke on the way: some of the body may have arrived.
    var isInterrupted: Bool { transport.map { $0.kind != .offline } ?? false }

    /// True when sending less in parallel is the right answer.
    var isCongestion: Bool {
        switch transport?.kind {
        case .stalled, .timedOut: true
        case nil: [.busy, .unavailable, .requestTimeout].contains(code)
        default: false
        }
    }

    /// A short cause with what to do, safe for strangers (R107).
    var message: String {
        if let refusedByteCount {
            return "Something before the service refused a body of \(refusedByteCount) bytes as too"
                + " large."
        }
        if isBodyRefused, code == .requestTooLarge {
            return "Something before the service refused the request as too large (\(source))."
        }
        if let explanation {
            // What answers is no Kedge, and may say itself what it is about.
            return [explanation, serverText == nil ? nil : detail].compactMap { $0 }
                .joined(separator: " ")
        }
        return transport?.connection?.text.map { $0 + "." } ?? plainMessage
    }

    /// The same failure by another name.
    func with(_ code: ErrorCode, _ explanation: String?) -> RequestFailure {
        var other = RequestFailure(
            code, operation: operation, answer: answer, retryAfter: retryAfter, problem: problem,
            serverText: serverText, transport: transport)
        (other.isForeign, other.lacksToken) = (isForeign, lacksToken)
        other.isFromIntermediary = isFromIntermediary
        (other.explanation, other.attempt) = (explanation, attempt)
        other.refusedByteCount = refusedByteCount
        return other
    }

    /// The message where nothing is known of the connection.
    private var plainMessage: String {
        switch transport?.kind {
        case .offline: "The server cannot be reached."
        case .dropped: "The connection was lost."
        case .stalled, .timedOut: "The connection carries no bytes."
        case .tls: "No secure connection to the server; check its certificate and its address."
        case .bodyUnreadable: "The local file cannot be read."
        case .canceled, .other, nil:
            [sentence, detail].compactMap { $0 }.joined(separator: " ")
        }
    }

    /// What was said, by whom when that may be another one than the person thinks.
    private var sentence: String {
        guard let answer else { return code.facts.sentence }
        let who = answer.place ?? "The server"
        switch answer.status {
        case 401 where lacksToken:
            return "\(who) asks for a token (status 401), and none was sent: set one."
        case 403 where lacksToken:
            return "\(who) does not allow this without a token (status 403): set one."
        case 401:
            return "\(who) asks for a valid token (status 401): check the one that is set."
        case 403:
            return "\(who) does not allow this with the token that is set (status 403); check it."
        default:
            if isFromIntermediary {
                return "\(who) answers with status \(answer.status), and not as a Kedge server"
                    + " does."
            }
            guard isForeign || code == .protocolViolation else { return code.facts.sentence }
            return "\(code.facts.sentence.dropLast()) (\(source))."
        }
    }

    /// Who answered, and with which status.
    private var source: String {
        [answer?.place, answer.map { "status \($0.status)" }].compactMap { $0 }
            .joined(separator: ", ")
    }

    /// Characters of the server's own words that are passed on, at most.
    private static let maxDetailCount = 300

    /// What the server says about this case, as a sentence of its own; nil when that is nothing new.
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
    /// True for a body that was too large for what answered, which is not the service itself: it
    /// says so in a problem document.
    var isBodyRefused: Bool { answer?.status == 413 && problem == nil }

    /// True for an answer of something before the service that may only mean that the body broke off on
    /// its way there: HAProxy says 400 then.
    var mayBeCutShort: Bool { answer?.status == 400 && problem == nil }

    /// How many such answers in a row mean that what sends them takes no body at all.
    static let maxCutShortCount = 3

    /// The same failure with the size of the body, where it was refused on the way.
    func refusing(_ byteCount: Int64) -> RequestFailure {
        guard isBodyRefused else { return self }
        var failure = self
        failure.refusedByteCount = byteCount
        return failure
    }

    /// The failure of a transport.
    ///
    /// - Parameter answer: The head of an answer whose body did not arrive whole.
    init(_ error: TransportError, operation: String, answer: ServerAnswer? = nil) {
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

    /// A failure that the server reported.
    ///
    /// - Parameters:
    ///   - body: At most the first 64 KiB of the answer.
    ///   - subject: What the request was about: decides what a bare 404 means.
    init(_ reply: ServerReply, body: [UInt8], operation: String, subject: Subject) {
        // A problem document that cannot be read is as good as none: the status speaks.
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(body))
        // A server may only say what the table has a status for: a full disk is ours to find.
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
    }

    /// Statuses by which something before a Kedge refuses this request for what it is or brings: waiting
    /// does not help.
    private static let statusesOfRequests: Set<Int> = [
        400, 401, 403, 407, 408, 411, 413, 414, 417, 431, 451,
    ]

    private static func text(ofForeignProblem body: [UInt8]) -> String? {
        struct ForeignProblem: Decodable {
            var title: String?
            var detail: String?
        }
        // A page or a plain text is for browsers and logs, not for a line of ours.
        let problem = try? JSONDecoder().decode(ForeignProblem.self, from: Data(body))
        return problem.flatMap { $0.detail ?? $0.title }
    }

    /// What a request is about.
    enum Subject: Sendable {
        /// An upload session of a Kedge.
        case session
        /// A file of a Kedge.
        case file
        /// A file anywhere.
        case resource
        /// An upload at an address of its own, in a dialect that others also speak.
        case upload

        var isOfKedge: Bool { self == .session || self == .file }
    }

    /// Codes of answers that have none.
    ///
    /// - Parameter isReplaced: True when something else answered in the place of a Kedge.
    private static func code(
        ofStatus status: Int, subject: Subject, isReplaced: Bool
    ) -> ErrorCode {
        if subject == .upload, let code = uploadCodes[status] { return code }
        if isReplaced, status < 500, status != 425, status != 429 { return .notKedge }
        return switch status {
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

    /// What tus 1.0 and the IETF drafts mean by a status, where that is special to them.
    private static let uploadCodes: [Int: ErrorCode] = [
        404: .sessionNotFound, 405: .methodNotAllowed, 409: .offsetMismatch, 410: .sessionExpired,
        412: .uploadVersionUnsupported, 415: .unsupportedMediaType,
        // In neither specification, and what servers with locks answer.
        423: .busy,
        425: .busy, 460: .uploadChecksumMismatch, 501: .methodNotAllowed,
    ]
}

/// The `Retry-After` header field (RFC 9110 section 10.2.3).
enum RetryAfter {
    /// Reads seconds or an HTTP date; nil for anything else and for the past.
    static func parse(_ value: String?, now: Timestamp) -> Duration? {
        guard let value else { return nil }
        if let seconds = WireInteger.parse(value) { return .seconds(min(seconds, 86_400)) }
        guard let date = Timestamp(httpDate: value) else { return nil }
        let wait = date.duration(since: now)
        return wait > .zero ? wait : nil
    }
}

extension HTTPField.Name {
    static let xRequestID = constant("X-Request-Id")
    static let chunkHash = constant("X-Chunk-Hash")
    static let reprDigest = constant("Repr-Digest")
    static let idempotencyKey = constant("Idempotency-Key")

    /// A name that is known to be well formed.
    static func constant(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is a field name") }
        return name
    }
}
