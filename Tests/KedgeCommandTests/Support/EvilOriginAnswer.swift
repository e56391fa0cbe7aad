/// An answer that can be bent in any place before it is sent.
struct EvilAnswer: Sendable {
    /// What goes over the connection after the head.
    enum Step: Sendable {
        case bytes(ArraySlice<UInt8>)
        case pause(milliseconds: Int32)
        /// Over and over, until the client hangs up.
        case endless([UInt8])
        /// Nothing, until the client hangs up.
        case silence
    }

    /// What becomes of the connection.
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
    /// Sends the body of an answer to HEAD as well.
    var hasBodyAlways = false
    /// What is sent in place of status line and fields.
    var rawHead: [UInt8]?
    /// What is sent before the status line.
    var preamble: [UInt8] = []

    /// The first field with the name. Setting it leaves no other of that name; nil none at all.
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

    /// Bytes of a body that is all there.
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
    /// A whole answer of its own.
    init(_ status: Int, type: String = "text/plain", _ text: String = "") {
        statusLine = "HTTP/1.1 \(status) Answer"
        add("Content-Type", type)
        setBody(Array(text.utf8)[...])
    }

    /// The same status, with nothing of the file in it.
    mutating func become(_ status: Int, type: String = "text/plain", _ text: String = "") {
        self = EvilAnswer(status, type: type, text)
    }

    /// The page of a network that wants somebody to log in first.
    mutating func becomePortal() {
        become(200, type: "text/html", "<html><body>Please log in</body></html>")
    }

    mutating func redirect(to location: String?, _ status: Int = 302) {
        become(status)
        self["Location"] = location
    }

    /// A body with its length said.
    mutating func setBody(_ bytes: ArraySlice<UInt8>) {
        content = bytes
        self["Content-Length"] = "\(bytes.count)"
    }

    /// Sends something else where an answer should be, and hangs up.
    mutating func becomeRaw(_ bytes: [UInt8], ending: Ending = .closes) {
        rawHead = bytes
        body = []
        self.ending = ending
    }

    /// Sends so much of the body and hangs up, without a word about it in the head.
    mutating func breakOff(after count: Int, _ ending: Ending = .closes) {
        content = content.prefix(count)
        self.ending = ending
    }

    /// Frames the body as one chunk, with what is to follow it.
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

    /// Says no length: the body ends with the connection.
    mutating func delimitByClose() {
        self["Content-Length"] = nil
        ending = .closes
    }
}
