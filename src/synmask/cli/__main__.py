from synmask.cli import main

main()
