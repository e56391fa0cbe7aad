/// Why the address of a bucket cannot be used, in one line.
package struct S3ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// Where a bucket is and how it is used.
package struct S3Configuration: Hashable, Sendable {
    /// Where requests carry the name of the bucket.
    package enum AddressingStyle: String, Hashable, Sendable {
        case path
        case virtual
    }

    package let bucket: String
    /// Ends in a slash unless it is empty. Everything of this store is below it.
    package let prefix: String
    let endpoint: S3Endpoint
    package let region: String
    package let style: AddressingStyle
    /// True when readers are sent to the store itself, with an address that is good for some minutes.
    package let redirectsReaders: Bool
    /// Where bytes lie between their arrival and their upload, in files without a name.
    package let spoolDirectory: String
    /// True when the SHA-256 of each object and part goes along as a checksum that the store keeps. A store
    /// that does not know them is noticed, too.
    package let sendsChecksums: Bool
    /// Bytes of saved chunks that stay in the spool for hashing, for all sessions together; 1 GiB. With
    /// less, files whose chunks come out of order are read back from the bucket more often.
    package var spoolBudgetByteCount: Int64 = 1 << 30
    /// Free space of the spool's disk that uploads never use, in bytes.
    package var spoolReserveByteCount: Int64 = 64 << 20
    /// Connections to the store; 64. Each chunk on its way needs one.
    package var maxConnectionCount = 64
    /// How long a request may be repeated at least while the store fails; 60 seconds. Large ones get more.
    package var patience = Duration.seconds(60)

    /// How long nothing is copied within the store after that has failed once; 10 minutes.
    package var copyPause = Duration.seconds(600)

    /// Reads `s3://bucket/prefix?endpoint=&region=&style=path|virtual&redirect=on|off&spool=&checksum=auto|off`.
    ///
    /// - Parameter environment: `AWS_REGION`, `AWS_DEFAULT_REGION` and `TMPDIR` fill what is left out.
    package init(
        url: String, environment: [String: String]
    ) throws(S3ConfigurationError) {
        let (place, parameters) = try Self.parts(of: url)
        (bucket, prefix) = try Self.bucketAndPrefix(place)
        region =
            parameters["region"] ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"]
            ?? "us-east-1"
        guard Self.isName(region) else { throw S3ConfigurationError("the region is no name") }
        let address = parameters["endpoint"] ?? "https://s3.\(region).amazonaws.com"
        guard let endpoint = S3Endpoint(address),
            address.split(separator: "/", omittingEmptySubsequences: true).count == 2
        else { throw S3ConfigurationError("endpoint is not http://host or https://host") }
        self.endpoint = endpoint
        let usual = parameters["endpoint"] == nil ? "virtual" : "path"
        guard let style = AddressingStyle(rawValue: parameters["style"] ?? usual) else {
            throw S3ConfigurationError("style is neither path nor virtual")
        }
        self.style = style
        redirectsReaders = try Self.flag("redirect", in: parameters, on: "on", usual: false)
        sendsChecksums = try Self.flag("checksum", in: parameters, on: "auto", usual: true)
        // Not /tmp, which is memory on many systems.
        spoolDirectory = parameters["spool"] ?? environment["TMPDIR"] ?? "/var/tmp"
        guard spoolDirectory.hasPrefix("/") else {
            throw S3ConfigurationError("spool is not an absolute path")
        }
    }

    private static let parameterNames: Set = [
        "endpoint", "region", "style", "redirect", "spool", "checksum",
    ]

    private static func parts(
        of url: String
    ) throws(S3ConfigurationError) -> (Substring, [String: String]) {
        guard url.hasPrefix("s3://") else { throw S3ConfigurationError("not an s3:// address") }
        let halves = url.dropFirst(5).split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var parameters: [String: String] = [:]
        for item in halves.count > 1 ? halves[1].split(separator: "&") : [] {
            let sides = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(sides[0])
            guard parameterNames.contains(name) else {
                throw S3ConfigurationError("the address has an unknown parameter, \(name)")
            }
            guard sides.count == 2, let value = PercentEncoding.decode(sides[1]), !value.isEmpty
            else { throw S3ConfigurationError("\(name) has no value") }
            guard parameters.updateValue(value, forKey: name) == nil else {
                throw S3ConfigurationError("\(name) is there twice")
            }
        }
        return (halves[0], parameters)
    }

    private static func bucketAndPrefix(
        _ place: Substring
    ) throws(S3ConfigurationError) -> (String, String) {
        let parts = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let bucket = String(parts[0])
        guard (3...63).contains(bucket.utf8.count), isName(bucket) else {
            throw S3ConfigurationError("the address has no name of a bucket")
        }
        let names = parts.count > 1 ? parts[1].split(separator: "/") : []
        var prefix = ""
        for name in names {
            guard let text = PercentEncoding.decode(name), text != ".", text != "..",
                text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else { throw S3ConfigurationError("the prefix cannot be used") }
            prefix += "\(text)/"
        }
        guard prefix.utf8.count <= 200 else { throw S3ConfigurationError("the prefix is too long") }
        return (bucket, prefix)
    }

    private static func flag(
        _ name: String, in parameters: [String: String], on: String, usual: Bool
    ) throws(S3ConfigurationError) -> Bool {
        switch parameters[name] {
        case nil: return usual
        case on: return true
        case "off": return false
        default: throw S3ConfigurationError("\(name) is neither \(on) nor off")
        }
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.first != UInt8(ascii: ".")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
