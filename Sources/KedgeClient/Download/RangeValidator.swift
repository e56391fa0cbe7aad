internal import HTTPTypes
internal import KedgeModel

/// What a server says that holds ranges of one version of a file together (RFC 9110 section 13.1.5).
package enum RangeValidator: Sendable, Equatable {
    /// A strong entity tag, with its quotes.
    case tag(String)
    /// The modification date of a file that had it for a second at least when it was served: a later
    /// change gives another date (RFC 9110 section 8.8.2.2).
    case date(String)
    /// A weak tag, a date that is too young, or nothing: when it differs so does the file, and when it
    /// does not, that proves nothing.
    case weak(String)

    /// As a record has it.
    init(text: String, isWeak: Bool) {
        self = isWeak ? .weak(text) : text.hasPrefix("\"") ? .tag(text) : .date(text)
    }

    /// Reads the head of an answer.
    init(_ fields: HTTPFields) {
        if let tag = fields[.eTag] {
            // A date must not stand in for a tag that is known, also for a weak one.
            self = RemoteFile.strongETag(tag).map { .tag($0) } ?? .weak(Self.weakTag(tag) ?? "")
            return
        }
        guard let text = fields[.lastModified], let modified = Timestamp(httpDate: text) else {
            self = .weak("")
            return
        }
        let served = fields[.date].flatMap { Timestamp(httpDate: $0) }
        let age = served.map { $0.duration(since: modified) } ?? .zero
        self = age >= .seconds(1) ? .date(text) : .weak(text)
    }

    var text: String {
        switch self {
        case .tag(let text), .date(let text), .weak(let text): text
        }
    }

    var isWeak: Bool { self == .weak(text) }

    /// The same without the claim that it proves anything.
    var weakened: Self { .weak(text) }

    /// What the head of a later answer says about the version.
    func verdict(on fields: HTTPFields) -> Verdict {
        let named: String? =
            switch self {
            case .tag: RemoteFile.strongETag(fields[.eTag])
            case .date: fields[.lastModified]
            case .weak(""): nil
            case .weak(let text):
                text.hasPrefix("W/") ? Self.weakTag(fields[.eTag]) : fields[.lastModified]
            }
        guard let named else { return .silent }
        return named == text ? .same : .other
    }

    /// What an answer says about the version that is downloaded.
    enum Verdict: Sendable, Equatable {
        case same
        case other
        /// Nothing that could be compared.
        case silent
    }

    private static func weakTag(_ value: String?) -> String? {
        guard let value, value.hasPrefix("W/"),
            RemoteFile.strongETag(String(value.dropFirst(2))) != nil
        else { return nil }
        return value
    }
}
