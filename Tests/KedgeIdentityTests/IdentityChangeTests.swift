import KedgeIdentity
import KedgeModel
import Testing

struct IdentityChangeTests {
    @Test func `a change is read back from its text`() {
        let changes: [IdentityChange] = [
            .token(.random()), .owner(.anonymous), .owner(OwnerID("token of a team")),
        ]
        for change in changes { #expect(IdentityChange(text: change.text) == change) }
    }

    @Test(arguments: [
        "", "token", "token ", "token 0123456789a", "token 0123456789ab ", "owner ", "owner  a",
        "owner é", "key 0123456789ab", "TOKEN 0123456789ab",
    ])
    func `text of another form is no change`(text: String) {
        #expect(IdentityChange(text: text) == nil)
    }
}
