"""python -m howsure.cli"""

from howsure.cli.main import main

main()
