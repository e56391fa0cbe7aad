extension String {
    /// Whether both texts have the same bytes. `==` also accepts other characters that look alike,
    /// such as the Kelvin sign for K, so it must not compare names of issuers, audiences or keys.
    func hasBytes(of other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
