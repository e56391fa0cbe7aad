import KedgePostgres
import Testing

struct ConnectionStringTests {
    private func parameters(_ url: String) throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: try ConnectionString(url).parameters.map {
                ($0.keyword, $0.value)
            })
    }

    @Test func `Kedge's own settings are read and not passed to libpq`() throws {
        let string = try ConnectionString(
            "postgres://me@host/db?pool_size=3&sslmode=verify-full&listen=off&allow_unsafe=on")
        #expect(string.poolSize == 3)
        #expect(!string.listens)
        #expect(string.allowsUnsafe)
        let keywords = Set(string.parameters.map(\.keyword))
        #expect(keywords.isDisjoint(with: ["pool_size", "listen", "allow_unsafe"]))
        #expect(keywords.isSuperset(of: ["host", "dbname", "user", "sslmode"]))
    }

    @Test func `the defaults are a safe server, eight connections and notifications`() throws {
        let string = try ConnectionString("postgresql://host/db")
        #expect(string.poolSize == 8)
        #expect(string.listens)
        #expect(!string.allowsUnsafe)
    }

    @Test func `connection parameters have defaults that the URL can replace`() throws {
        let given = try parameters("postgres://host/db?connect_timeout=9&application_name=mine")
        #expect(given["connect_timeout"] == "9")
        #expect(given["application_name"] == "mine")
        #expect(given["tcp_user_timeout"] == "10000")
        #expect(given["gssencmode"] == "disable")
    }

    @Test func `TLS settings and percent-encoded passwords arrive untouched`() throws {
        let given = try parameters(
            "postgres://me:a%3F%26b@host/db?sslmode=require&sslrootcert=%2Fetc%2Fca.pem")
        #expect(given["password"] == "a?&b")
        #expect(given["sslmode"] == "require")
        #expect(given["sslrootcert"] == "/etc/ca.pem")
    }

    @Test func `the default target is a writable server, which the URL can replace`()
        throws
    {
        #expect(try parameters("postgres://a,b/db")["target_session_attrs"] == "read-write")
        #expect(try parameters("postgres://a/db")["target_session_attrs"] == "read-write")
        let own = try parameters("postgres://a,b/db?target_session_attrs=any")
        #expect(own["target_session_attrs"] == "any")
    }

    @Test(arguments: [
        "mysql://host/db", "postgres://host/db?pool_size=0", "postgres://host/db?pool_size=many",
        "postgres://host/db?listen=maybe", "postgres://host/db?no_such_keyword=1",
        "postgres://me:%zzsecret@host/db",
    ])
    func `a malformed URL is refused without repeating its password`(_ url: String) throws {
        let error = try #require(throws: PostgresStoreError.self) { try ConnectionString(url) }
        #expect(!error.description.contains("secret"))
    }
}
