import KedgeS3
import Testing

struct S3ConfigurationTests {
    @Test func `a URL with only a bucket names one of AWS`() throws {
        let configuration = try S3Configuration(
            url: "s3://my-bucket", environment: ["AWS_REGION": "eu-west-1"])
        #expect(configuration.bucket == "my-bucket")
        #expect(configuration.prefix == "")
        #expect(configuration.region == "eu-west-1")
        #expect(configuration.style == .virtual)
        #expect(configuration.endpoint == S3Endpoint("https://s3.eu-west-1.amazonaws.com"))
        #expect(!configuration.redirectsReaders)
        #expect(configuration.sendsChecksums)
    }

    @Test func `every parameter of a bucket URL is read`() throws {
        let configuration = try S3Configuration(
            url: "s3://bucket/a%20b/c/?endpoint=http://127.0.0.1:9000/&region=local&style=virtual"
                + "&redirect=on&spool=%2Fdata%2Fspool&checksum=off",
            environment: ["AWS_REGION": "eu-west-1"])
        #expect(configuration.prefix == "a b/c/")
        #expect(configuration.endpoint.host == "127.0.0.1:9000")
        #expect(configuration.region == "local")
        #expect(configuration.style == .virtual)
        #expect(configuration.redirectsReaders)
        #expect(configuration.spoolDirectory == "/data/spool")
        #expect(!configuration.sendsChecksums)
    }

    @Test func `a store with its own endpoint is addressed by path, in region us-east-1`() throws {
        let configuration = try S3Configuration(
            url: "s3://bucket?endpoint=https://store.example:443", environment: [:])
        #expect(configuration.style == .path)
        #expect(configuration.region == "us-east-1")
        #expect(configuration.endpoint.host == "store.example")
    }

    @Test(arguments: [
        "http://bucket", "s3://", "s3://B", "s3://ab", "s3://bucket?what=1", "s3://bucket?style",
        "s3://bucket?style=", "s3://bucket?style=none", "s3://bucket?redirect=yes",
        "s3://bucket?checksum=on", "s3://bucket?spool=relative", "s3://bucket/../x",
        "s3://bucket?endpoint=store.example", "s3://bucket?endpoint=ftp://store.example",
        "s3://bucket?endpoint=http://key:secret@store.example",
        "s3://bucket?endpoint=http://store.example/path",
        "s3://bucket?region=a&region=b", "s3://bucket?region=a%2fb", "s3://bucket/%00",
    ])
    func `a malformed bucket URL is refused`(_ url: String) {
        #expect(throws: S3SetupError.self) {
            try S3Configuration(url: url, environment: [:])
        }
    }
}
