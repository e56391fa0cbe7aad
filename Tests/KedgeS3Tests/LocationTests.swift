import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeS3
import Testing

struct LocationTests {
    @Test func `recorded locations of chunks and staging areas read back`() {
        for location in [ChunkLocation.part(tag: "\"a:b\""), .object(tag: "")] {
            #expect(ChunkLocation(location.text) == location)
        }
        for state in [
            StagingState.upload(UploadReference(id: "a:b", hasChecksums: true)),
            .upload(UploadReference(id: "a", hasChecksums: false)), .object(key: "x/y:z"),
        ] {
            #expect(StagingState(state.text) == state)
        }
    }

    @Test(arguments: [nil, "", "part", "other:x"])
    func `locations of another store are not recognized`(_ text: String?) {
        #expect(ChunkLocation(text) == nil)
        #expect(StagingState(text) == nil)
    }

    @Test func `a list of pieces reads back only from its own start`() throws {
        let digest = SHA256Hasher.digest(of: [1])
        let list = PieceList([
            Piece(start: 100, byteCount: 5, digest: digest),
            Piece(start: 105, byteCount: 1, digest: digest),
        ])
        #expect(PieceList(list.text, from: 100) == list)
        #expect(PieceList(list.text, from: 99) == nil)
        #expect(PieceList(nil, from: 0) == PieceList([]))
    }

    @Test(arguments: [
        "pieces:0+5+0123456789abcdef,6+1+0123456789abcdef", "pieces:0+0+0123456789abcdef",
        "pieces:0+-1+0123456789abcdef", "pieces:0+5+../../..",
        "pieces:0+9223372036854775807+0123456789abcdef,1+1+0123456789abcdef", "part:x",
    ])
    func `malformed lists of pieces are refused`(_ text: String) {
        #expect(PieceList(text, from: 0) == nil)
    }

    @Test func `only objects under the store's own prefix are blobs`() {
        let keys = ObjectKeys(prefix: "a/")
        let key = StagingKey(.random())
        #expect(keys.isBlob(keys.assembled(key)))
        #expect(!keys.isBlob("objects/\(key)"))
        #expect(!keys.isBlob(keys.pieces(of: key)))
    }
}
