import KedgeFiles
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

struct CredentialsTests {
    private static let secret = "do-not-show"

    @Test func `the description of credentials contains no secret`() {
        let credentials = S3Credentials(
            accessKeyID: "ID", secretAccessKey: Secret(Self.secret),
            sessionToken: Secret(Self.secret))
        var dumped = ""
        dump(credentials, to: &dumped)
        for text in [dumped, "\(credentials)", String(reflecting: credentials)] {
            #expect(text.contains("ID"))
            #expect(!text.contains(Self.secret))
        }
    }

    @Test func `credentials are read from the environment, and incomplete ones are an error`()
        async throws
    {
        let found = try await EnvironmentCredentials(environment: [
            "AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T",
        ]).load()
        #expect(
            found
                == S3Credentials(
                    accessKeyID: "ID", secretAccessKey: Secret("S"), sessionToken: Secret("T")))
        #expect(try await EnvironmentCredentials(environment: [:]).load() == nil)
        await #expect(throws: S3SetupError.self) {
            try await EnvironmentCredentials(environment: ["AWS_ACCESS_KEY_ID": "ID"]).load()
        }
    }

    @Test(arguments: [("default", "one"), ("other", "two")])
    func `credentials are read from the profile in the shared file`(
        _ profile: String, _ id: String
    ) async throws {
        let text = """
            # comment
            [default]
            aws_access_key_id = one
            aws_secret_access_key=first
            [ other ]
            AWS_ACCESS_KEY_ID = two
            aws_secret_access_key = sec=ond\t
            aws_session_token = token
            """
        let directory = try TemporaryDirectory()
        let source = try Self.sharedFile(
            text, in: directory,
            environment: profile == "default" ? [:] : ["AWS_PROFILE": profile])
        let found = try #require(try await source.load())
        #expect(found.accessKeyID == id)
        #expect(found.secretAccessKey == Secret(id == "one" ? "first" : "sec=ond"))
        #expect((found.sessionToken != nil) == (id == "two"))
    }

    @Test func `a missing profile is an error`() async throws {
        let directory = try TemporaryDirectory()
        let source = try Self.sharedFile(
            "[default]\n", in: directory, environment: ["AWS_PROFILE": "missing"])
        await #expect(throws: S3SetupError.self) { try await source.load() }
    }

    private static func sharedFile(
        _ text: String, in directory: TemporaryDirectory, environment: [String: String]
    ) throws -> SharedFileCredentials {
        let path = "\(directory.path)/credentials"
        let file = try POSIXFileSystem().open(path, .createNew)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
        return SharedFileCredentials(
            environment: environment.merging(["AWS_SHARED_CREDENTIALS_FILE": path]) { old, _ in old
            },
            files: SmallFiles(fileSystem: POSIXFileSystem(), pool: BlockingPool(threadCount: 1)))
    }

    @Test(arguments: [
        ("RELATIVE", ".example.org/role"), ("RELATIVE", "@example.org/role"),
        ("FULL", "http://example.org/role"),
    ])
    func `a container's address with another host is refused before it is asked`(
        _ kind: String, _ address: String
    ) async throws {
        let name = "AWS_CONTAINER_CREDENTIALS_\(kind)_URI"
        let chain = CredentialsChain.standard(
            environment: [name: address], region: "r", pool: BlockingPool(threadCount: 1))
        let error = await #expect(throws: S3SetupError.self) {
            try await chain.credentials()
        }
        #expect(error?.description.hasPrefix(name) == true)
    }

    @Test func `the answer of the token service is parsed`() throws {
        let found = try WebIdentityCredentials.credentials(
            in: """
                <AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
                <SessionToken>T</SessionToken><SecretAccessKey>S</SecretAccessKey>
                <Expiration>2026-01-01T00:00:00Z</Expiration><AccessKeyId>ID</AccessKeyId>
                </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>
                """)
        #expect(found.accessKeyID == "ID")
        #expect(found.expiresAt == Timestamp("2026-01-01T00:00:00Z"))
    }

    @Test func `the answer of a metadata service is parsed`() throws {
        let found = try ServiceAnswer.credentials(
            in: #"{ "Code" : "Success", "Number": 3, "AccessKeyId" : "I\u0044", "Token":"T\/t","#
                + #""SecretAccessKey" : "S\"s", "Expiration" : "2026-01-01T00:00:00Z", "X":null }"#)
        #expect(found.accessKeyID == "ID")
        #expect(found.secretAccessKey == Secret("S\"s"))
        #expect(found.sessionToken == Secret("T/t"))
        #expect(found.expiresAt == Timestamp("2026-01-01T00:00:00Z"))
    }

    @Test(arguments: ["", "{", "[]", #"{"a"}"#, #"{"a":"b""#, #"{"a":{"b":1}}"#])
    func `JSON that is no flat object is refused`(_ text: String) {
        #expect(JSONMembers.read(text) == nil)
    }
}
