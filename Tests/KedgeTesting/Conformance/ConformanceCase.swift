package import KedgeEngine
internal import Testing

/// One behaviour that every store of a kind must show.
///
/// Each adapter's tests run the whole list as one parameterised test, so a behaviour added here is
/// required of every store.
package struct ConformanceCase<Store: Sendable>: Sendable, CustomTestStringConvertible {
    /// Opens the store at one location. A call after a close opens the store that is there.
    package typealias Opener = @Sendable () async throws -> Store

    /// The behaviour, as a sentence.
    package let name: String
    private let body: @Sendable (@escaping Opener) async throws -> Void

    /// A behaviour that shows when the store is closed and opened again.
    init(
        reopening name: String, _ body: @escaping @Sendable (@escaping Opener) async throws -> Void
    ) {
        self.name = name
        self.body = body
    }

    package var testDescription: String { name }

    /// Checks the behaviour with a store at an empty location.
    package func run(_ open: @escaping Opener) async throws { try await body(open) }
}

extension ConformanceCase where Store == any MetadataStore {
    init(_ name: String, _ body: @escaping @Sendable (any MetadataStore) async throws -> Void) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            try await store.close()
        }
    }
}

extension ConformanceCase where Store == any ByteStore {
    init(_ name: String, _ body: @escaping @Sendable (any ByteStore) async throws -> Void) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            await store.close()
        }
    }
}

extension ConformanceCase where Store == any LocalByteStore {
    init(_ name: String, _ body: @escaping @Sendable (any LocalByteStore) async throws -> Void) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            await store.close()
        }
    }
}

/// Behaviours of every metadata store.
package enum MetadataStoreConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any MetadataStore>

    /// The promises of the port, one by one.
    package static let all =
        creating + rooms + linkUses + chunks + partials + rivals + sizes + finalizing + canceling
        + files
        + expiring
        + garbage
        + adopting + work + locations + concurrency + model
}

/// Behaviours of every byte store.
package enum ByteStoreConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any ByteStore>

    /// The promises of the port, one by one.
    package static let all = areas + chunks + rivals + blobs + model
}

/// Further behaviours of a byte store that belongs to one process.
package enum LocalByteStoreConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any LocalByteStore>

    /// The promises of the port, one by one.
    package static let all = staging + promoting + keeping + rivals
}
