internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// The identifier of a request in its response and in the log.
enum RequestID {
    /// The client's identifier if it is plain, otherwise a new one.
    static func of(_ request: Request) -> String {
        if let given = request.headers[.xRequestID], (1...64).contains(given.utf8.count),
            given.utf8.allSatisfy({ isPlain($0) })
        {
            return given
        }
        return make()
    }

    static func make() -> String {
        Hex.encode((0..<8).map { _ in UInt8.random(in: .min ... .max) })
    }

    private static func isPlain(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: "."):
            true
        default: false
        }
    }
}
