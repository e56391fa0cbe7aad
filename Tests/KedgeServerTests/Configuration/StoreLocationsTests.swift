import KedgeServer
import Testing

/// Addresses of the metadata store and the byte store, as an operator writes them.
struct StoreLocationsTests {
    @Test func `embedded and shared stores have an address, and other text is none`() {
        #expect(MetadataLocation(text: "sqlite") == .sqlite)
        #expect(MetadataLocation(text: "postgres://h/d") == .postgres(url: "postgres://h/d"))
        #expect(MetadataLocation(text: "postgresql://h/d") == .postgres(url: "postgresql://h/d"))
        #expect(BytesLocation(text: "disk") == .disk)
        #expect(BytesLocation(text: "s3://b/p") == .s3(url: "s3://b/p"))
        for text in ["", "SQLITE", "postgres", "mysql://h/d", "s3:b", "disk "] {
            #expect(MetadataLocation(text: text) == nil)
            #expect(BytesLocation(text: text) == nil)
        }
    }

    @Test(arguments: [
        ("postgresql://u:secret@h:5432/d", "postgresql://u@h:5432/d"),
        ("postgresql://u:sec@ret:x@h/d?a=b", "postgresql://u@h/d?a=b"),
        (
            "postgresql://h/d?user=u&password=secret&sslmode=require",
            "postgresql://h/d?user=u&sslmode=require"
        ),
        ("postgresql://h/d?password=secret", "postgresql://h/d"),
        ("postgresql://h/d?sslpassword=secret&a=b", "postgresql://h/d?a=b"),
        ("postgresql://u:se?cret@h/d", "postgresql://u@h/d"),
        ("postgresql://h/d?%70assword=secret&a=b", "postgresql://h/d?a=b"),
        ("postgresql://u@h/d", "postgresql://u@h/d"), ("postgresql:///d", "postgresql:///d"),
        ("postgresql://[::1]:5432/d", "postgresql://[::1]:5432/d"), ("sqlite", "sqlite"),
    ])
    func `the password of a store address is never shown`(url: String, shown: String) async throws {
        #expect(StoreAddress.withoutPassword(url) == shown)
        guard let location = MetadataLocation(text: url) else { return }
        #expect("\(location)" == shown)
        #expect(String(reflecting: location) == shown)
        #expect(!"\([location])".contains("secret"))
        let loader = try await ConfigurationLoader(
            flags: [.metadata: url], environment: [:], file: nil)
        #expect(loader.printed().contains("metadata: \"\(shown)\""))
        #expect(!"\(try loader.configuration())".contains("secret"))
    }
}
