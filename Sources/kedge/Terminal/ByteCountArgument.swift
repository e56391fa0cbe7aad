internal import ArgumentParser
internal import KedgeModel

/// A size as typed: a number of bytes, or one with a unit.
struct ByteCountArgument: ExpressibleByArgument {
    let byteCount: Int64

    init(_ byteCount: Int64) { self.byteCount = byteCount }

    init?(argument: String) {
        guard let byteCount = Quantity.byteCount(argument) else { return nil }
        self.byteCount = byteCount
    }

    var defaultValueDescription: String { "\(byteCount)" }
}
