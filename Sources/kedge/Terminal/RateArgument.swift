internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// The value of `--bwlimit`: one rate for both directions, or `UPLOAD:DOWNLOAD`; `off` for no
/// limit.
struct RateArgument: ExpressibleByArgument {
    let rates: BandwidthRates

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let upload = Self.rate(parts[0]),
            let download = Self.rate(parts[parts.count - 1])
        else { return nil }
        rates = BandwidthRates(upload: upload.value, download: download.value)
    }

    /// - Returns: Nil for malformed text; a value of nil for no limit.
    private static func rate(_ text: Substring) -> (value: Int64?, Void)? {
        if text == "off" { return (nil, ()) }
        var text = text
        if text.hasSuffix("/s") { text.removeLast(2) }
        guard let count = Quantity.byteCount(String(text)), count > 0 else { return nil }
        return (count, ())
    }
}
