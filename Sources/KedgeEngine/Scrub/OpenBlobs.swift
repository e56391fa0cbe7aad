internal import KedgeLocks

/// The locations of blobs that readers of this node have open, so that superseded ones are kept.
final class OpenBlobs: Sendable {
    /// Holds the reader weakly: the end of its life releases the location.
    private struct Entry: Sendable {
        weak let reader: (any BlobReader)?
    }

    private let entries = Mutex<[String: [Entry]]>([:])

    /// Records the location for as long as the reader lives; does nothing without a location.
    func add(_ reader: any BlobReader, at location: String?) {
        guard let location else { return }
        entries.withLock { entries in
            let others = (entries[location] ?? []).filter { $0.reader != nil }
            entries[location] = others + [Entry(reader: reader)]
        }
    }

    /// Locations that are being read now.
    var locations: [String] {
        entries.withLock { entries in
            entries = entries.filter { $0.value.contains { $0.reader != nil } }
            return Array(entries.keys)
        }
    }
}
