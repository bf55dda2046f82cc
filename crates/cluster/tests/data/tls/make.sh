#!/usr/bin/env bash
# Makes the certificates of the tests of TLS: an authority, a node's for the name "localhost" and no address, a client's, and an authority
# that signed none of them. They are valid for a hundred years, and secret to nobody. Needs openssl and keytool (of a JDK).
set -euo pipefail
cd "$(dirname "$0")"
days=36500 password=marquetry

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
authority() { # NAME
  key "$1-key.pem"
  openssl req -x509 -new -key "$1-key.pem" -days "$days" -subj "/CN=$1" -out "$1.pem" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
signed() { # NAME EXTENSIONS
  key "$1-key.pem"
  openssl req -new -key "$1-key.pem" -subj "/CN=$1" |
    openssl x509 -req -days "$days" -CA authority.pem -CAkey authority-key.pem -extfile <(printf '%s\n' "$2") -out "$1.pem"
}

authority authority
authority other
signed node $'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE'
signed client $'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth'
openssl pkcs12 -export -inkey node-key.pem -in node.pem -certfile authority.pem -name node -passout "pass:$password" -out node.p12
rm -f trusted.p12
keytool -importcert -noprompt -alias authority -file authority.pem -keystore trusted.p12 -storetype PKCS12 -storepass "$password"
rm -f authority-key.pem other-key.pem
