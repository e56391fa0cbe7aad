import Foundation
import JWTKit

/// A key pair of an issuer in tests, as the members of its JSON Web Key. It signs nothing else.
struct TestKey: Sendable {
    let members: [String: String]

    /// Returns the public key as JSON.
    func published(_ id: String?, _ more: [String: String] = [:]) -> String {
        var members = members.filter { !["d", "p", "q"].contains($0.key) }
        members["kid"] = id
        members.merge(more) { $1 }
        return TokenText.object(members.mapValues { TokenText.quoted($0) })
    }

    /// Signs with an algorithm that the key is for.
    func sign(_ text: String, _ algorithm: String) async throws -> [UInt8] {
        let all = members.merging(["kid": "k", "alg": algorithm]) { $1 }
        let json = TokenText.object(all.mapValues { TokenText.quoted($0) })
        let collection = JWTKeyCollection()
        try await collection.add(jwk: try JWK(json: json))
        let key = try await collection.getKey(for: JWKIdentifier(string: "k"))
        return try key.sign(Array(text.utf8))
    }

    /// Signs with a shared secret.
    static func sign(_ text: String, secret: String) async throws -> [UInt8] {
        let collection = JWTKeyCollection()
        await collection.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        return try await collection.getKey().sign(Array(text.utf8))
    }
}

extension TestKey {
    static let rsa = TestKey(members: [
        "kty": "RSA", "e": "AQAB",
        "n":
            "smqYgXo7BXEN1eXlT4cpk1FRZl5xVZf5oSO8zLbqSRypVcj8aO-8tdfHDEX9iu-O-Q2oEbU9v3M5hak8suGA6mdWCuRQf6Dx3FRllYpIiGTmRUra8ee7ObMRqOQoll-_qLY3ULEfjra4J1FI8h2FZhIZYZstEj3z_5eBwuP42l_PHXLwC4rCYEepnUqwNpxDvof6JWqT0li5Dh-bseM4E8PmqEjpvHk7_ClgXrS9EcQ0GJgyryjYtniaxzIp_4Un8F0v0D-5yMvsqsqgJnbDPm1iVsbIRzujOO--T5qEfpYTo-1jP2sHaA3ikhzb5v8wzrsi8xsNpe6mHwEhmYKdVQ",
        "d":
            "BhoqPCdzlFSRDhNOXAF59Q1vdMpfIvfPNGk2AGRzL-v4iLQWmfo1IJ0QNEXCjbly0ObcLDrgMUeeHIm0x0N6NsoxAa9cZ3kYPJpwXQR9RZj53T3ZrjNoTmlm_blMABSnR_xveOWN-EIcm0-m6I0E7oBI-PMnP_v5d_D1IbbNYJ6eg8z3znWzwof1ewrORxQVWI7gqkvZmG1g0ElyvX7bTMT0DtqKJv0KbYDpaQP2PkcBWoHYKvwqg1sKY5FQaLbTPbDkxo7wxMRoWovOG0ecTflOL8gbqDDE_lPAVWfm9IdhKWa6Xh5G0QU6WxDvOpOxMoS9KCQH7Q-3F65GvzEHUQ",
        "p":
            "9QSAQcIrDKGqJK0t7tgqC_DuQzRIzzGETQMFtHgUjmMD-DhYqYJ-dcWqYTiHmkYMHmXgUZq1cLKajqs7nv85A_nynxnENsrikwqXbmu8vE2m2WwUfnjjNwg0urBoEyS5xffwM3cFHI3fqF3Ki7m7yzBu_T3U2oGHoOyT6My99Gk",
        "q":
            "umnd_yeuYAEAxAnVc8boCI-7CcfmkB4QLt2PFCxvCTZJ29fblA2Ht9FElqfuv4VH2_bDrgw_J-JXQKIUIDZZR5gQZqHX0ACTR5YEaHuoiyDJtuBFDd6Dr9kpQ8oc34OCOkgC7Gq65YHy6OkyIS2sCdPBMRXuTuJuMqoEySn9FA0",
    ])

    /// 1,024 bits, which are too few.
    static let weak = TestKey(members: [
        "kty": "RSA", "e": "AQAB",
        "n":
            "8GzbBsC5xEjgYkEAYLBqdzhlJDvjjPfRXpP_D6e3PNKVLPttDkxSyIcDOhg27ITFIt-LyszK1Kwh887jnV-vuz8I3tbvvjJWvKyG7iCeeH4tKTD_HBkfrA7NEOZjkCNHvZ9sTUZvvj6LzTnDRQBUjE-kC_Zq3yzFvyrd7k-nKjM",
    ])

    static let p256 = TestKey(members: [
        "kty": "EC", "crv": "P-256", "x": "0xvPxE3cjN7iFhWbHY5mk7kjRj-3_PSEKClSrrsWvQk",
        "y": "nUqk2jLoTAK2fP6yNrODBKHfKDxIMG9EyGCsabjsjOM",
        "d": "2-VN5TY28hULIeFGOmMgT-WbBqD0SqcrYeDAYQHMk_I",
    ])

    static let p384 = TestKey(members: [
        "kty": "EC", "crv": "P-384",
        "x": "bTUG8dgHMl7ILc8Iam4URQFTGCLnNRT7C6Vy2HEMWRa19MvXuliAcwimYG1fD1z4",
        "y": "IKMsJxpisA5rTNcv2gmMLWJhuWi4N7DeBDe3XQAYiQFgDOOcVi9PAMKRPWFeBFOw",
        "d": "OuPoT7QtPhyHVNhcTKxrPvdCfpx8T-BbBrMyhVZC17M_wYfW8FwkGGJUW42JMTSR",
    ])

    static let p521 = TestKey(members: [
        "kty": "EC", "crv": "P-521",
        "x":
            "AKUm5_QAbrubiG7HmOT0MVQfkxcCll74GpkGY0YWmT770mRMgcVp9j6GnJw7nGJ5C5mggl0kl4naWZLGc0VGUp6o",
        "y":
            "ANhw-Yot0na4K77u2RxOU8DyHbZ6fHa9isSuI_hLU1P-EcIj3CruK2b8j_G2IR9IVCZ1xop-sGObl_7tjW2ODScq",
        "d":
            "Aaxe0eQYFM-zZQoe1y6k3mev03gkcYJ9uCn_kGRecvvbiX7sQPbqEqLnNcUVtqSriY9kKcuQwYZe72IVdQk9i1EE",
    ])

    static let ed25519 = TestKey(members: [
        "kty": "OKP", "crv": "Ed25519", "x": "x1Sf8k_bOmjPTgi4428Qh76PWvVLZ7otEsrJggDpy9w",
        "d": "MUpF-S0FTo5TqCTmBOzHi8Fq2dH9EARUo1r24wbdzEw",
    ])
}
