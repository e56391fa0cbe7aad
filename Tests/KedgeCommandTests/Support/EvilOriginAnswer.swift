/// An answer that a test can change in any place before it is sent.
struct EvilAnswer: Sendable {
    /// A step of sending the body.
    enum Step: Sendable {
        case bytes(ArraySlice<UInt8>)
        case pause(milliseconds: Int32)
        /// Repeats the bytes until the client hangs up.
        case endless([UInt8])
        /// Sends nothing until the client hangs up.
        case silence
    }

    /// The state of the connection after the answer.
    enum Ending: Sendable {
        case keeps
        case closes
        case resets
    }

    struct Field: Sendable {
        var name: String
        var value: String
    }

    var statusLine = "HTTP/1.1 200 OK"
    var fields: [Field] = []
    var lineEnd = "\r\n"
    var body: [Step] = []
    var ending = Ending.keeps
    /// Whether the body is sent with an answer to HEAD, too.
    var hasBodyAlways = false
    /// Bytes that are sent in place of status line and fields.
    var rawHead: [UInt8]?
    /// Bytes that are sent before the status line.
    var preamble: [UInt8] = []

    /// The first field with the name. Setting it removes all others of that name; nil removes every
    /// one.
    subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { add(name, newValue) }
        }
    }

    /// Adds a field beside others of the name.
    mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// The bytes of a complete body.
    var content: ArraySlice<UInt8> {
        get {
            if case .bytes(let bytes) = body.first { bytes } else { [] }
        }
        set { body = [.bytes(newValue)] }
    }

    var head: [UInt8] {
        if let rawHead { return rawHead }
        let lines = [statusLine] + fields.map { "\($0.name): \($0.value)" } + ["", ""]
        return preamble + Array(lines.joined(separator: lineEnd).utf8)
    }
}

extension EvilAnswer {
    /// Makes a complete answer without the file.
    init(_ status: Int, type: String = "text/plain", _ text: String = "") {
        statusLine = "HTTP/1.1 \(status) Answer"
        add("Content-Type", type)
        setBody(Array(text.utf8)[...])
    }

    /// Replaces the answer by one with this status and without the file.
    mutating func become(_ status: Int, type: String = "text/plain", _ text: String = "") {
        self = EvilAnswer(status, type: type, text)
    }

    /// Replaces the answer by the login page of a captive portal.
    mutating func becomePortal() {
        become(200, type: "text/html", "<html><body>Please log in</body></html>")
    }

    mutating func redirect(to location: String?, _ status: Int = 302) {
        become(status)
        self["Location"] = location
    }

    /// Sets the body and its Content-Length.
    mutating func setBody(_ bytes: ArraySlice<UInt8>) {
        content = bytes
        self["Content-Length"] = "\(bytes.count)"
    }

    /// Sends other bytes in place of an answer, and hangs up.
    mutating func becomeRaw(_ bytes: [UInt8], ending: Ending = .closes) {
        rawHead = bytes
        body = []
        self.ending = ending
    }

    /// Sends so many bytes of the body and hangs up, with an unchanged head.
    mutating func breakOff(after count: Int, _ ending: Ending = .closes) {
        content = content.prefix(count)
        self.ending = ending
    }

    /// Frames the body as one chunk, followed by the given end.
    mutating func chunk(
        _ size: String? = nil, ending end: String = "\r\n0\r\n\r\n", closes: Bool = false
    ) {
        let bytes = content
        self["Content-Length"] = nil
        self["Transfer-Encoding"] = "chunked"
        let size = size ?? String(bytes.count, radix: 16)
        body = [
            .bytes(Array("\(size)\r\n".utf8)[...]), .bytes(bytes), .bytes(Array(end.utf8)[...]),
        ]
        if closes { ending = .closes }
    }

    /// Removes the length: the body ends with the connection.
    mutating func delimitByClose() {
        self["Content-Length"] = nil
        ending = .closes
    }
}
