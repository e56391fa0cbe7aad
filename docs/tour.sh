#!/bin/sh
# A tour of the HTTP interface with curl alone: create, chunks from last to first, status, finalize,
# a range of the result.
#
#   KEDGE_SERVER=http://127.0.0.1:8080 sh docs/tour.sh FILE
#
# Needs curl, sha256sum and dd. The answers are printed as they come.
set -eu

file=${1:?usage: KEDGE_SERVER=URL sh docs/tour.sh FILE}
server=${KEDGE_SERVER:-http://127.0.0.1:8080}
size=$(wc -c <"$file" | tr -d ' ')
file_hash=$(sha256sum <"$file" | cut -d ' ' -f 1)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# member NAME: the value of a text or number member of the JSON in $answer.
member() {
    printf '%s' "$answer" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

# The name goes into JSON: backslashes and quotes are escaped.
name=$(basename "$file" | sed 's/[\\"]/\\&/g')

echo "1. A session for $size bytes in chunks of 256 KiB. The key makes it safe to ask again."
answer=$(curl --silent --show-error --fail-with-body "$server/uploads/sessions" \
    --header 'Content-Type: application/json' \
    --header "Idempotency-Key: tour-$file_hash-$$" \
    --data "{\"fileName\":\"$name\",\"fileSize\":$size,\"chunkSize\":262144}")
echo "   $answer"
session=$(member sessionId)
chunk_size=$(member chunkSize)
chunk_count=$(member totalChunks)

echo "2. $chunk_count chunks, the last one first."
index=$chunk_count
while [ "$index" -gt 0 ]; do
    index=$((index - 1))
    dd if="$file" of="$scratch/chunk" bs="$chunk_size" skip="$index" count=1 2>/dev/null
    first=$((index * chunk_size))
    last=$((first + $(wc -c <"$scratch/chunk") - 1))
    chunk_hash=$(sha256sum <"$scratch/chunk" | cut -d ' ' -f 1)
    answer=$(curl --silent --show-error --fail-with-body --request PUT \
        "$server/uploads/sessions/$session/chunks/$index" \
        --header 'Content-Type: application/octet-stream' \
        --header "Content-Range: bytes $first-$last/$size" \
        --header "X-Chunk-Hash: sha256=$chunk_hash" \
        --data-binary "@$scratch/chunk")
    echo "   $answer"
    if [ "$index" -eq $((chunk_count - 1)) ]; then
        echo "3. What the service has so far: all that a client needs to go on after a drop."
        answer=$(curl --silent --show-error --fail-with-body "$server/uploads/sessions/$session")
        echo "   $answer"
    fi
done

echo "4. Finalize, with the hash that the whole file must have."
answer=$(curl --silent --show-error --fail-with-body \
    "$server/uploads/sessions/$session/finalize" \
    --header 'Content-Type: application/json' \
    --data "{\"fileHashSha256\":\"$file_hash\"}")
echo "   $answer"
id=$(member remoteFileId)

echo "5. Its headers, then a few of its bytes, then all of them."
curl --silent --show-error --fail --head "$server/files/$id" | tr -d '\r' | sed 's/^/   /'
if [ "$size" -gt 0 ]; then
    curl --silent --show-error --fail --range 0-15 --output "$scratch/range" "$server/files/$id"
    head -c 16 "$file" | cmp - "$scratch/range"
fi
curl --silent --show-error --fail --output "$scratch/file" "$server/files/$id"
cmp "$file" "$scratch/file"
echo "The download is the upload: sha256 $file_hash"
