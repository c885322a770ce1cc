from synmask.__main__ import main

main()
